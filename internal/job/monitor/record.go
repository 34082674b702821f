package monitor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"

	"github.com/argon-go/argon/internal/errs"
)

// recordStep is how much of a recording has the same interval between views: behind it twice as many are left out, so
// that a job of any length needs few steps. A line has less than 1 MiB, of few ranks some kB.
const recordStep = 8 << 20

// recorded is a line of a recording.
type recorded struct {
	View   json.RawMessage `json:"view"` // as the page gets it
	Report string          `json:"report"`
}

// Record writes views to w until the job ends, one a line, or until w fails. It counts as a viewer.
func (f *Feed) Record(w io.Writer) error { return f.record(w, recordStep) }

func (f *Feed) record(w io.Writer, step int) error {
	ctx := context.Background()
	var left *View // that was left out last
	every, n, size := 1, 0, 0
	write := func(v *View) error {
		line, err := json.Marshal(recorded{v.JSON(), v.Report()})
		if err == nil {
			_, err = w.Write(append(line, '\n')) // whole, whatever ends this process
		}
		if size += len(line); size > step {
			every, size = 2*every, 0
		}
		return err
	}
	for v := f.Next(ctx, nil); v != nil; v = f.Next(ctx, v) {
		if n++; n%every != 0 {
			left = v
			continue
		}
		left = nil
		if err := write(v); err != nil {
			return err
		}
	}
	if left != nil {
		return write(left)
	}
	return nil
}

// Replay serves a file of Record on the same page, at address, as Serve does.
func Replay(address, file string) (*Server, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, errs.BadArg("monitor: %v", err)
	}
	r := &replay{f: f}
	n, err := r.look()
	var first recorded
	if err == nil && n > 0 {
		var line []byte
		if line, err = r.line(0); err == nil && (json.Unmarshal(line, &first) != nil || len(first.View) == 0) {
			err = errors.New("this is no recording of gasrun -monitor-record")
		}
	} else if err == nil {
		err = errors.New("there is no view in it: the job had ended before, or this is no recording of gasrun -monitor-record")
	}
	var s *Server
	if err != nil {
		err = errs.BadArg("monitor: %s: %v", file, err)
	} else {
		s, err = serve(address, map[string]http.HandlerFunc{"GET /events": r.events, "GET /view": r.view})
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	s.file = f
	return s, nil
}

// A replay is a recording that is read, perhaps while it is written.
type replay struct {
	f  *os.File
	mu sync.Mutex
	at []int64 // where lines begin, and where the last whole one ends
}

// look finds the lines that there are by now, and returns how many. One that has no end is not whole.
func (r *replay) look() (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == nil {
		r.at = []int64{0}
	}
	end := r.at[len(r.at)-1]
	in := bufio.NewReaderSize(io.NewSectionReader(r.f, end, 1<<62-end), 1<<16)
	for {
		part, err := in.ReadSlice('\n')
		end += int64(len(part))
		switch {
		case err == nil:
			r.at = append(r.at, end)
		case err == io.EOF:
			return len(r.at) - 1, nil
		case err != bufio.ErrBufferFull:
			return 0, err
		}
	}
}

// line is one of them, from 0 on.
func (r *replay) line(n int) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n < 0 || n >= len(r.at)-1 {
		return nil, fmt.Errorf("there are %d views", len(r.at)-1)
	}
	b := make([]byte, r.at[n+1]-r.at[n])
	_, err := r.f.ReadAt(b, r.at[n])
	return bytes.TrimSpace(b), err
}

// events tells the page how many views there are.
func (r *replay) events(w http.ResponseWriter, _ *http.Request) {
	n, err := r.look()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "event: recorded\ndata: %d\n\n", n)
}

func (r *replay) view(w http.ResponseWriter, q *http.Request) {
	n, err := strconv.Atoi(q.URL.Query().Get("n"))
	var line []byte
	if err == nil {
		line, err = r.line(n)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(line)
}

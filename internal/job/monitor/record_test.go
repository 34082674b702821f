package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// record writes the views of a job of so many seconds to w.
func record(w io.Writer, seconds, step int) (*Feed, error) {
	f, second := &Feed{}, 0
	f.Begin(onTwoHosts, func() {
		if second++; second > seconds {
			f.Close()
		} else {
			f.Publish(time.Duration(second)*time.Second, fourRanks(second))
		}
	})
	return f, f.record(w, step)
}

// secondOf is when a line of a recording was, and whether it has all that the page shows.
func secondOf(t *testing.T, line []byte) int {
	t.Helper()
	var r recorded
	var v struct {
		At          time.Duration
		Total       Row
		Rows, Hosts []Row
		Pairs       []any
	}
	if err := errors.Join(json.Unmarshal(line, &r), json.Unmarshal(r.View, &v)); err != nil {
		t.Fatalf("line %q: %v", line, err)
	}
	n := int(v.At / time.Second)
	if v.Rows[3].Sent != uint64(40*n) || len(v.Hosts) != 2 || len(v.Pairs) < 3 || !strings.Contains(r.Report, "\nrank 0: barrier phase 3") {
		t.Errorf("after %v it says %q", v.At, line)
	}
	return n
}

// TestRecord: each view is a line, of long jobs fewer and fewer, and the last is there. What cannot be written ends the recording,
// and no rank is asked for it any more.
func TestRecord(t *testing.T) {
	for _, tc := range []struct {
		seconds, step int
		want          []int
	}{
		{0, 1, nil},
		{5, 1 << 20, []int{1, 2, 3, 4, 5}},
		{21, 1, []int{1, 2, 4, 8, 16, 21}}, // each line is a step
		{16, 1, []int{1, 2, 4, 8, 16}},
	} {
		var b strings.Builder
		f, err := record(&b, tc.seconds, tc.step)
		var got []int
		for line := range strings.Lines(b.String()) {
			got = append(got, secondOf(t, []byte(line)))
		}
		if err != nil || !slices.Equal(got, tc.want) || f.Wanted() {
			t.Errorf("of %d seconds there are %v, want %v; %v", tc.seconds, got, tc.want, err)
		}
	}
	full := errors.New("full")
	w := &failing{left: 2, err: full}
	if f, err := record(w, 9, 1<<20); !errors.Is(err, full) || w.left != 0 || f.Wanted() {
		t.Errorf("a disk that is full: %v", err)
	}
}

// failing takes so many writes.
type failing struct {
	left int
	err  error
}

func (w *failing) Write(b []byte) (int, error) {
	if w.left == 0 {
		return 0, w.err
	}
	w.left--
	return len(b), nil
}

// TestReplay: the page of a recording has its views, also those that are written meanwhile, but none that is not whole; what is no
// recording is not served.
func TestReplay(t *testing.T) {
	name := filepath.Join(t.TempDir(), "job.jsonl")
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := record(out, 3, 1<<20); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(out, `{"view":`)
	s, err := Replay(DefaultAddress, name)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr}
	events := func(want int) {
		t.Helper()
		if status, text := get(t, c, s, s.URL()+"events", ""); status != 200 || text != fmt.Sprintf("event: recorded\ndata: %d\n\n", want) {
			t.Errorf("the page hears %q", text)
		}
	}
	events(3)
	for n := range 3 {
		if status, text := get(t, c, s, fmt.Sprintf("%sview?n=%d", s.URL(), n), ""); status != 200 || secondOf(t, []byte(text)) != n+1 {
			t.Errorf("view %d is %d, %q", n, status, text)
		}
	}
	for path, want := range map[string]int{"": 200, "view?n=3": 404, "view?n=-1": 404, "view?n=x": 404, "view": 404, "report": 404, "metrics": 404} {
		if status, _ := get(t, c, s, s.URL()+path, ""); status != want {
			t.Errorf("%q is %d, want %d", path, status, want)
		}
	}
	if status, _ := get(t, c, s, s.URL()+"view?n=0", "evil.example"); status != 403 {
		t.Errorf("under another name it is %d", status)
	}
	fmt.Fprint(out, `{}}`+"\n")
	events(4)

	for text, want := range map[string]string{"": "no view", `{"view":{}}`: "no view", "{}\n": "no recording", "root\n": "no recording"} {
		if err := os.WriteFile(name+"2", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Replay(DefaultAddress, name+"2"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Replay(DefaultAddress, name+"3"); err == nil {
		t.Error("a file that is not there is shown")
	}
}

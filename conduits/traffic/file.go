package traffic

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"sync"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
)

// chunkBytes is how much a rank keeps before it writes; a chunk is written by one call, so that the
// processes of a host can write to one file.
const chunkBytes = 64 << 10

// output is where the ranks of this process write their records.
type output struct {
	name string
	mu   sync.Mutex
	f    *os.File
	open int // ranks that have not closed
	err  error
}

// Record has eps, all endpoints of this process in a job, before they are attached, record their
// traffic in file, which is there if launched says so. Further jobs of the process get file.2, .3, ...
func Record(eps []conduits.Endpoint, file string, launched bool) ([]conduits.Endpoint, error) {
	f, launched, err := sys.OpenForJob(file, launched)
	if err == nil && !launched {
		_, err = f.Write(Header(eps[0].Size(), eps[0].Conduit(), os.Args[0]))
	}
	if err != nil {
		return nil, errs.Resource("traffic: recording (-record, ARGON_RECORD): %v", err)
	}
	to := &output{name: f.Name(), f: f, open: len(eps)}
	l := make([]conduits.Endpoint, len(eps))
	for i, ep := range eps {
		l[i] = wrap(ep, to)
	}
	return l, nil
}

// full writes what e has if that is enough for a chunk.
func (f *output) full(e *recorder) {
	if len(e.s.b) >= chunkBytes {
		f.write(e)
		e.last = e.Now() // the time is not the program's
	}
}

func (f *output) write(e *recorder) {
	b := e.s.b
	head := append(make([]byte, 0, 13+len(b)), 'C')
	for _, v := range [...]uint32{uint32(e.Rank()), uint32(len(b)), crc32.ChecksumIEEE(b)} {
		head = binary.LittleEndian.AppendUint32(head, v)
	}
	e.s.b = b[:0]
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		_, f.err = f.f.Write(append(head, b...))
	}
}

// flush ends a rank's records.
func (f *output) flush(e *recorder) error {
	e.mu.Lock()
	f.write(e)
	e.s.b = nil
	e.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open--; f.open == 0 {
		f.err = errors.Join(f.err, f.f.Close())
	}
	if f.err != nil {
		return errs.Resource("traffic: the recording %s is not complete: %v (-record, ARGON_RECORD)", f.name, f.err)
	}
	return nil
}

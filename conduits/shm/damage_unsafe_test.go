package shm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unicode"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// printable returns an error if err's text is too long, or not printable on a terminal.
func printable(err error) error {
	s := err.Error()
	if len(s) > 10*recMax {
		return fmt.Errorf("an error of %d bytes", len(s))
	}
	for _, r := range s {
		if r != '\n' && !unicode.IsPrint(r) {
			return fmt.Errorf("%q holds %U", s, r)
		}
	}
	return nil
}

// exchange has every rank send a message to every rank and wait for all of theirs.
// It returns the error of each rank.
func exchange(eps []*Endpoint, got []atomic.Int64) []error {
	l := make([]error, len(eps))
	done := make(chan int)
	for r, e := range eps {
		go func() {
			for dst := range eps {
				sent := false
				err := conduits.Wait(e, why("credit"), func() bool {
					st := e.Send(dst, conduits.Request, 1, []uint32{1})
					sent = st == conduits.Ready
					return st != conduits.NoCredit
				})
				if err == nil && !sent {
					err = e.Err()
				}
				if err != nil {
					l[r] = err
				}
			}
			if l[r] == nil {
				l[r] = conduits.Wait(e, why("messages"), func() bool { return got[r].Load() >= int64(len(eps)) })
			}
			done <- r
		}()
	}
	for range eps {
		<-done
	}
	return l
}

// TestDamagedWords changes each word of the header and of a control block, in a job
// whose ranks exchange messages. The job ends with an error that can be printed, or
// goes on: it never hangs, and no rank sees an error that is not the job's.
func TestDamagedWords(t *testing.T) {
	const n = 2
	rng := rand.New(rand.NewPCG(1, 2))
	step := 1
	if testing.Short() {
		step = 7
	}
	damage := func(name string, at func(e *Endpoint) unsafe.Pointer, off int, v uint32, failed bool) {
		eps := forms[3].open(t, n, conduits.Config{})
		got := make([]atomic.Int64, n)
		attach(t, eps, page, func(r int, _ *conduits.Message) { got[r].Add(1) })
		for r, err := range exchange(eps, got) {
			if err != nil {
				t.Fatalf("rank %d: %v", r, err)
			}
		}
		for r := range got {
			got[r].Store(0)
		}
		if failed {
			eps[1].Fail(errors.New("\x1b[2Jthe disk is full"))
		}
		stop, stopped := make(chan struct{}), make(chan struct{})
		w := (*uint32)(unsafe.Add(at(eps[0]), off))
		go func() { // the watchers, sooner than they would
			defer close(stopped)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if i == 3 {
					atomic.StoreUint32(w, v)
				}
				for _, e := range eps {
					e.j.look()
				}
				runtime.Gosched()
			}
		}()
		for r, err := range exchange(eps, got) {
			if err == nil {
				err = eps[r].Err()
			}
			var pe *conduits.PeerError
			switch {
			case err == nil && !failed:
			case err == nil:
				t.Errorf("%s, byte %d to %#x: rank %d hears of no failure", name, off, v, r)
			case !errors.As(err, &pe):
				t.Errorf("%s, byte %d to %#x: rank %d: %v", name, off, v, r, err)
			case pe.Rank < -1 || pe.Rank >= n:
				t.Errorf("%s, byte %d to %#x: rank %d failed", name, off, v, pe.Rank)
			case printable(err) != nil:
				t.Errorf("%s, byte %d to %#x: %v", name, off, v, printable(err))
			}
		}
		close(stop)
		<-stopped
		for _, e := range eps {
			_ = e.Close()
			e.j.unmap()
		}
	}
	header := func(e *Endpoint) unsafe.Pointer { return e.j.header }
	control := func(e *Endpoint) unsafe.Pointer { return e.j.ctl(0) }
	peers := func(e *Endpoint) unsafe.Pointer { return e.j.ctl(1) }
	values := []uint32{0, 1, ^uint32(0)}
	for off := 0; off < hdrBytes; off += 4 * step {
		if off >= hdrRecord+64 && off < hdrRecord+recBytes { // all alike
			continue
		}
		damage("header", header, off, values[rng.IntN(3)], false)
		damage("header", header, off, rng.Uint32(), off%8 == 0)
	}
	for off := 0; off < ctlBytes; off += 4 * step {
		if off >= ctlSystem+64 && off < ctlRecord { // the barrier's
			continue
		}
		if off >= ctlRecord+64 { // all alike
			break
		}
		damage("control block", control, off, values[rng.IntN(3)], false)
		damage("control block", control, off, rng.Uint32(), false)
		damage("failed rank's control block", peers, off, rng.Uint32(), true)
	}
}

// TestLostAnnouncement: a rank whose announcement that it sleeps has been
// overwritten is not left asleep when a message comes.
func TestLostAnnouncement(t *testing.T) {
	eps := forms[3].open(t, 2, conduits.Config{})
	var got atomic.Bool
	attach(t, eps, 0, func(int, *conduits.Message) { got.Store(true) })
	done := make(chan error)
	go func() { done <- conduits.Wait(eps[0], why("a message"), got.Load) }()
	for e := eps[0]; e.parks.Load() == 0 || atomic.LoadUint32(e.parked) == 0; {
		runtime.Gosched()
	}
	atomic.StoreUint32(eps[0].parked, 0)
	send(eps[1], 0, conduits.Request)
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
			eps[0].j.look()
			runtime.Gosched()
		}
	}
}

// TestZeroedControlBlock: the whole page of a rank is overwritten while all others
// sleep, and while it sleeps itself.
func TestZeroedControlBlock(t *testing.T) {
	for _, v := range []byte{0, 0xff, 0x1b} {
		eps := forms[3].open(t, 3, conduits.Config{})
		attach(t, eps, page, func(int, *conduits.Message) {})
		done := make(chan error)
		for _, e := range eps {
			go func() { done <- conduits.Wait(e, why("nothing"), func() bool { return false }) }()
			awaitArmed(e, 1)
		}
		for i := range ctlBytes {
			*(*byte)(unsafe.Add(eps[0].j.ctl(1), i)) = v
		}
		for range eps {
			err := <-done
			if err := peerFailed(err, 1, "damaged: the control block of rank 1"); err != nil {
				t.Error(err)
			}
			if err := printable(err); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestForgedRecord: what another process can write into the record, checksum
// included, is neither believed nor printed as it is.
func TestForgedRecord(t *testing.T) {
	raw := "\x1b]0;owned\a" + strings.Repeat("\xff", 500)
	for _, f := range []struct {
		name         string
		rank, status uint32
		text, want   string
		wantRank     int
	}{
		{"rank", 4289967296 - 1 + failedBias, 1, "x", "names rank", -1},
		{"rank behind", 3 + failedBias, 1, "x", "names rank 3 of 3", -1},
		{"status", 1 + failedBias, 1 << 20, "x", "ended with status 1048576", -1},
		{"text", 1 + failedBias, 1, raw, `\x1b]0;owned\a\xff\xff`, 1},
	} {
		eps := forms[3].open(t, 3, conduits.Config{})
		attach(t, eps, page, func(int, *conduits.Message) {})
		p := eps[0].j.record(1)
		*(*uint32)(unsafe.Add(p, recRank)) = f.rank
		*(*uint32)(unsafe.Add(p, recStatus)) = f.status
		*(*uint32)(unsafe.Add(p, recLen)) = uint32(len(f.text))
		copy(unsafe.Slice((*byte)(unsafe.Add(p, recText)), recMax), f.text)
		*(*uint64)(unsafe.Add(p, recSum)) = recordSum(f.rank, f.status, []byte(f.text))
		atomic.StoreUint64(eps[0].j.failedWord(), namedRecord(1))
		if err := peerFailed(eps[2].Err(), f.wantRank, f.want); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
		if err := printable(eps[2].Err()); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
	}
}

// TestWindowShuts: accesses by the views learn of a failure although no rank polls.
func TestWindowShuts(t *testing.T) {
	eachForm(t, func(t *testing.T, fm form) {
		eps := fm.open(t, 3, conduits.Config{})
		attach(t, eps, page, func(int, *conduits.Message) {})
		_, views := eps[0].Views()
		if _, ok := views[1].Bytes(segment.AttachBase, 8, views[1].Write); !ok {
			t.Fatal("no access before the failure")
		}
		eps[2].Fail(errors.New("the disk is full"))
		for i := range views { // the watcher's doing
			for views[i].Size() != 0 {
				runtime.Gosched()
			}
		}
		if n := eps[0].SegmentSize(1); n != page {
			t.Errorf("the segment of rank 1 has %d bytes", n)
		}
	})
}

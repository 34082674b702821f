package perfetto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/conc"
)

// written has a process write slices with these names to a file in one piece.
func written(t *testing.T, name string, slices ...string) {
	t.Helper()
	to, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	f := &File{to: to, begun: true, say: io.Discard}
	r := f.Rank(0, nil, true)
	for i, s := range slices {
		r.Done(Messages, &Slice{Name: s, Peer: None, Began: time.Duration(i)}, time.Duration(i))
	}
	if f.Close(); f.err != os.ErrClosed {
		t.Fatal(f.err)
	}
}

// names are those of all slices in a file, all of whose packets must be whole.
func names(t *testing.T, name string) (list string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if k := whole(b); k != len(b) {
		t.Fatalf("%d bytes of %d are whole packets: %x", k, len(b), b)
	}
	for _, s := range []string{"one", "two", "three", "four", "five"} {
		if n := bytes.Count(b, []byte(s)); n > 1 {
			t.Errorf("%d slices %q", n, s)
		} else if n == 1 {
			list += " " + s
		}
	}
	return list
}

// TestTorn: a process that is killed while it writes leaves at each byte what others can write behind, and readers read: all whole packets
// of it, and all of others.
func TestTorn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "trace")
	written(t, name, "one", "two")
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	written(t, name, "three", "four")
	all, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for cut := len(before); cut <= len(all); cut++ {
		if err := os.WriteFile(name, all[:cut], 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Mend(f, true)
		if f.Close(); err != nil {
			t.Fatal(err)
		}
		want, had := " one two", names(t, name)
		for _, s := range []string{"three", "four"} {
			if i := bytes.Index(all, []byte(s)); cut > i+30 { // its packet has ended
				want += " " + s
			}
		}
		if !strings.HasPrefix(had, want) || len(had) < last {
			t.Fatalf("cut at %d of %d the file has%s", cut, len(all), had)
		}
		last = len(had)
		if err := os.WriteFile(name, all[:cut], 0o666); err != nil {
			t.Fatal(err)
		}
		written(t, name, "five")
		if got := names(t, name); got != had+" five" {
			t.Fatalf("cut at %d of %d, and written on, the file has%s, not%s five", cut, len(all), got, had)
		}
	}
	if last != len(" one two three four") {
		t.Errorf("the whole file has %d bytes of names", last)
	}
}

// event is one that a file has.
type event struct {
	what  int
	track uint64
	at    time.Duration
	name  string
}

// events are those of a file, whose packets must be whole.
func events(t *testing.T, name string) (list []event, size int) {
	t.Helper()
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	read := func(b []byte, each func(field int, v uint64, text []byte)) {
		for len(b) > 0 {
			key, n := binary.Uvarint(b)
			v, k := binary.Uvarint(b[n:])
			switch b = b[n+k:]; key & 7 {
			case wireVarint:
				each(int(key>>3), v, nil)
			case wireLen:
				each(int(key>>3), 0, b[:v])
				b = b[v:]
			default:
				t.Fatalf("wire type %d", key&7)
			}
		}
	}
	read(file, func(_ int, _ uint64, packet []byte) {
		var e event
		read(packet, func(field int, v uint64, b []byte) {
			switch field {
			case packetTimestamp:
				e.at = time.Duration(v)
			case packetEvent:
				read(b, func(field int, v uint64, b []byte) {
					switch field {
					case eventType:
						e.what = int(v)
					case eventTrack:
						e.track = v
					case eventName:
						e.name = string(b)
					}
				})
			}
		})
		if e.what != 0 {
			list = append(list, e)
		}
	})
	return list, len(file)
}

// TestRing: what is written of a trace whose last is kept has all of that time, and of slices that have begun before those that went on
// then; each end has its begin; and it is bounded, however much the rank does. So it is if it is written twice.
func TestRing(t *testing.T) {
	if conc.Race {
		t.Skip("one goroutine has no races")
	}
	const last, each = 1000 * time.Nanosecond, 60_000
	for _, step := range []time.Duration{1, 0} { // room for all of the time, and for less
		name := filepath.Join(t.TempDir(), "trace")
		f, err := Open(name, false, last, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		r := f.Rank(0, nil, true)
		now := time.Duration(0)
		outer := r.Span(&Slice{Name: "outer", Peer: None}, 1)
		forgotten := r.Span(&Slice{Name: "forgotten", Peer: None}, 1)
		work := func() {
			for range each {
				r.Done(Messages, &Slice{Name: "message", Peer: None, Began: now}, now)
				now += step
			}
		}
		work()
		forgotten(now)
		waits := r.Begin(Waits, &Slice{Name: "waits", Peer: None, Began: now})
		work()
		f.Dump()
		once, size := events(t, name)
		if most := ringChunks * chunkBytes; size > most {
			t.Errorf("the file has %d bytes, more than %d", size, most)
		}
		work()
		r.End(Waits, waits, now)
		work()
		outer(now)
		f.Dump()
		f.Dump()
		f.Close()
		all, _ := events(t, name)
		count, open := map[string]int{}, map[uint64]int{}
		for i, e := range all {
			switch e.what {
			case begin:
				open[e.track]++
				if i < len(once) {
					count[e.name]++
				}
				if count["all "+e.name]++; e.name == "message" && step > 0 && i < len(once) && e.at < 2*each*step-last-1 {
					t.Errorf("a message of %v, at %v", e.at, 2*each*step)
				}
			case finish:
				if open[e.track]--; open[e.track] < 0 {
					t.Fatalf("step %v: event %d is an end without a begin", step, i)
				}
			}
		}
		for track, k := range open {
			if k != 0 {
				t.Errorf("step %v: %d slices of track %#x have no end", step, k, track)
			}
		}
		if count["outer"] != 1 || count["all outer"] != 1 || count["waits"] != 1 || count["all waits"] != 1 || count["forgotten"] != 0 ||
			step > 0 && count["message"] != int(last/step)+1 || step == 0 && count["message"] < 10_000 {
			t.Errorf("step %v: the file has %v", step, count)
		}
	}
}

// TestMerge: what another host has written comes at other times, in whatever pieces it comes, but for half a packet, and what is no trace is refused.
func TestMerge(t *testing.T) {
	name := filepath.Join(t.TempDir(), "trace")
	written(t, name+" there", "three", "four")
	b, err := os.ReadFile(name + " there")
	if err != nil {
		t.Fatal(err)
	}
	for size := 1; size <= len(b); size = 2*size + 1 {
		for _, tc := range []struct {
			more string
			err  error
		}{{"", nil}, {string(b[:3]), io.ErrUnexpectedEOF}, {"no trace", errNoTrace}} {
			_ = os.Remove(name)
			written(t, name, "one")
			f, err := Extend(name)
			if err != nil {
				t.Fatal(err)
			}
			rest, times := append(bytes.Clone(b), tc.more...), []time.Duration{}
			err = f.Merge(func() ([]byte, bool) {
				piece := rest[:min(size, len(rest))]
				rest = rest[len(piece):]
				return piece, len(piece) > 0
			}, func(theirs time.Duration) time.Duration {
				times = append(times, theirs)
				return 1<<40 + theirs
			})
			f.Close()
			if !errors.Is(err, tc.err) {
				t.Errorf("in pieces of %d, and %q: %v, not %v", size, tc.more, err, tc.err)
			}
			if got := names(t, name); tc.err != errNoTrace && got != " one three four" || !slices.Equal(times, []time.Duration{0, 0, 1, 1}) {
				t.Errorf("in pieces of %d, and %q: %q at %v", size, tc.more, got, times)
			}
			all, _ := os.ReadFile(name)
			if k := bytes.Count(all, binary.AppendUvarint([]byte{packetTimestamp<<3 | wireVarint}, 1<<40+1)); tc.err != errNoTrace && k != 2 {
				t.Errorf("in pieces of %d: %d times are those of here, of 2", size, k)
			}
		}
	}
}

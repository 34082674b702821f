package extended

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/argon-go/argon/conduits"
)

// growing moves the stack of the goroutine that waits before it does.
type growing struct{ *fakeEP }

func (g growing) Wait(b conduits.Blocked, cond func() bool) error {
	deepen(40)
	return g.fakeEP.Wait(b, cond)
}

// deepen needs n KiB of stack.
func deepen(n int) byte {
	var kib [1024]byte
	kib[n] = 1
	if n == 0 {
		return kib[0]
	}
	return kib[n] + deepen(n-1)
}

// exchange does one blocking operation, with a buffer that lies on this goroutine's stack:
// a get of what is there, or a put of want.
func exchange(x *Initiator, put bool, want []byte) error {
	var room [bounceSize + 100]byte
	b := room[:len(want)]
	if put {
		copy(b, want)
		return x.Put(1, at(0), b)
	}
	if err := x.Get(1, at(0), b); err != nil {
		return err
	}
	if !bytes.Equal(b, want) {
		return fmt.Errorf("what was got of %d bytes is not what was put", len(b))
	}
	return nil
}

// below calls f when some n bytes of stack are used, in steps of a frame's size.
//
//go:noinline
func below(n int, f func() error) error {
	var frame [16]byte
	if n <= 0 {
		return f()
	}
	err := below(n-len(frame)-32, f)
	frame[0] = 1
	return err
}

// TestStackMoves: the buffer of a blocking operation may be a local variable, though the
// operation goes through a conduit, and the stack moves meanwhile.
func TestStackMoves(t *testing.T) {
	j := newFake(2, fakeOptions{seed: 3})
	x := j.eps[0].x
	x.poll = growing{j.eps[0]}
	failed := make(chan error)
	for i := range 20 {
		for _, n := range []int{0, 1, 16, bounceSize, bounceSize + 1} {
			want := bytes.Repeat([]byte{byte(i + n + 1)}, n)
			for _, put := range []bool{true, false} {
				// On a new stack, which is small, and ends at different places.
				go func() { failed <- below(8*(20*n+i)%2048, func() error { return exchange(x, put, want) }) }()
				if err := <-failed; err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(j.segs[1][:n], want) {
				t.Fatalf("a put of %d bytes has put others", n)
			}
		}
	}
}

// TestLocalBuffers: blocking operations on local variables allocate nothing where load
// and store reach the target.
func TestLocalBuffers(t *testing.T) {
	x := newFake(2, fakeOptions{direct: true}).eps[0].x
	for name, f := range map[string]func() error{
		"put": func() error { var v [16]byte; return x.Put(1, at(0), v[:]) },
		"get": func() error { var v [16]byte; return x.Get(1, at(0), v[:]) },
	} {
		if n := testing.AllocsPerRun(100, func() {
			if err := f(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

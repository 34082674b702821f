package segment

import (
	"cmp"
	"testing"

	"pgregory.net/rapid"
)

// upc is a shared array as UPC 1.3 defines it, written down element by element:
// elements go to the blocks in order, the blocks to the threads in turn, and the
// elements of a thread lie one after the other.
type upc struct {
	thread, phase, local []int
}

func newUPC(l Layout, count int) upc {
	var u upc
	have := make([]int, l.Threads)
	thread, phase := 0, 0
	for range count {
		u.thread = append(u.thread, thread)
		u.phase = append(u.phase, phase)
		u.local = append(u.local, have[thread])
		have[thread]++
		if l.Block == 0 {
			continue
		}
		if phase++; phase == l.Block {
			phase = 0
			thread = (thread + 1) % l.Threads
		}
	}
	return u
}

const elemSize = 12

func (u upc) ptr(i int) Shared {
	return Shared{Thread: u.thread[i], Phase: u.phase[i], Addr: AttachBase + NLA(u.local[i]*elemSize)}
}

func sign(x int) int { return cmp.Compare(x, 0) }

func genLayout(t *rapid.T) Layout {
	return Layout{Threads: rapid.IntRange(1, 7).Draw(t, "THREADS"), Block: rapid.IntRange(0, 5).Draw(t, "block")}
}

func TestSharedWalksTheArray(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := genLayout(t)
		const count = 120
		u := newUPC(l, count)
		i := rapid.IntRange(0, count-1).Draw(t, "from")
		j := rapid.IntRange(0, count-1).Draw(t, "to")
		if got := u.ptr(i).Add(l, j-i, elemSize); got != u.ptr(j) {
			t.Fatalf("%+v: element %d plus %d is %v, want %v", l, i, j-i, got, u.ptr(j))
		}
		if x, ok := u.ptr(j).Sub(l, u.ptr(i), elemSize); !ok || x != j-i {
			t.Fatalf("%+v: element %d minus element %d is %d, %v", l, j, i, x, ok)
		}
		if th, lo := l.Locate(i); th != u.thread[i] || lo != u.local[i] || l.Index(th, lo) != i {
			t.Fatalf("%+v: element %d is located at %d:%d, back to %d", l, i, th, lo, l.Index(th, lo))
		}
		k := rapid.IntRange(0, count).Draw(t, "count")
		n := make([]int, l.Threads)
		for _, th := range u.thread[:k] {
			n[th]++
		}
		for th, want := range n {
			if got := l.Affinity(k, th); got != want {
				t.Fatalf("%+v: %d of %d elements on thread %d, want %d", l, got, k, th, want)
			}
		}
	})
}

// The two equations of UPC 1.3, section 6.4.2, paragraph 4, from anywhere, not
// only from elements of an array that begins on thread 0 with phase 0.
func TestSharedEquations(t *testing.T) {
	div := func(a, b int) int { // towards negative infinity
		q := 0
		for ; a < 0; a += b {
			q--
		}
		for ; a >= b; a -= b {
			q++
		}
		return q
	}
	mod := func(a, b int) int { return a - b*div(a, b) }
	rapid.Check(t, func(t *rapid.T) {
		l := genLayout(t)
		l.Block++ // definite
		s := Shared{
			Thread: rapid.IntRange(0, l.Threads-1).Draw(t, "thread"),
			Phase:  rapid.IntRange(0, l.Block-1).Draw(t, "phase"),
			Addr:   AttachBase + 1<<20,
		}
		i := rapid.IntRange(-200, 200).Draw(t, "i")
		r := s.Add(l, i, 8)
		if want := mod(s.Phase+i, l.Block); r.Phase != want {
			t.Fatalf("phase %d, want %d", r.Phase, want)
		}
		if want := mod(s.Thread+div(s.Phase+i, l.Block), l.Threads); r.Thread != want {
			t.Fatalf("thread %d, want %d", r.Thread, want)
		}
		j := rapid.IntRange(-200, 200).Draw(t, "j")
		if a, b := r.Add(l, j, 8), s.Add(l, i+j, 8); a != b {
			t.Fatalf("(s + %d) + %d is %v, s + %d is %v", i, j, a, i+j, b)
		}
		// Paragraph 4: on one thread, shared and local arithmetic agree.
		if r.Thread == s.Thread {
			local := (int(r.Addr) - int(s.Addr)) / 8
			stepped := 0
			for at, d := s, sign(i); at != r; {
				at = at.Add(l, d, 8)
				if at.Thread == s.Thread {
					stepped += d
				}
			}
			if local != stepped {
				t.Fatalf("%d local elements apart, %d on the way", local, stepped)
			}
		}
	})
}

// Sub finds x exactly where r + x is s, phase included; looked for one by one.
func TestSharedSubIsInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Layout{Threads: rapid.IntRange(1, 3).Draw(t, "THREADS"), Block: rapid.IntRange(1, 4).Draw(t, "block")}
		draw := func(name string) Shared {
			return Shared{
				Thread: rapid.IntRange(0, l.Threads-1).Draw(t, name+" thread"),
				Phase:  rapid.IntRange(0, l.Block-1).Draw(t, name+" phase"),
				Addr:   AttachBase + NLA(rapid.IntRange(1000, 1040).Draw(t, name+" byte")),
			}
		}
		s, r := draw("s"), draw("r")
		x, ok := s.Sub(l, r, 4)
		if ok && r.Add(l, x, 4) != s {
			t.Fatalf("%+v: %v - %v is %d, but the sum is %v", l, s, r, x, r.Add(l, x, 4))
		}
		for y := -200; y <= 200 && !ok; y++ {
			if r.Add(l, y, 4) == s {
				t.Fatalf("%+v: %v - %v is undefined, but %d leads there", l, s, r, y)
			}
		}
	})
}

func TestSharedIndefinite(t *testing.T) {
	l := Layout{Threads: 4}
	s := Shared{Thread: 2, Addr: AttachBase + 400}
	r := s.Add(l, -25, 4)
	if r.Thread != 2 || r.Phase != 0 || r.Addr != AttachBase+300 {
		t.Errorf("400 bytes minus 25 elements is %v", r)
	}
	if x, ok := r.Sub(l, s, 4); !ok || x != -25 {
		t.Errorf("difference %d, %v", x, ok)
	}
	r.Thread = 3
	if x, ok := r.Sub(l, s, 4); ok {
		t.Errorf("difference across threads %d", x)
	}
}

func TestSharedUndefinedDifferences(t *testing.T) {
	l := Layout{Threads: 3, Block: 4}
	s := Shared{Thread: 1, Phase: 2, Addr: AttachBase + 4096}
	for name, r := range map[string]Shared{
		"phase that does not fit": {Thread: 1, Phase: 3, Addr: s.Addr},
		"part of an element":      {Thread: 1, Phase: 2, Addr: s.Addr + 4},
		"phase beyond the block":  {Thread: 1, Phase: 4, Addr: s.Addr + 16},
		"no such thread":          {Thread: 3, Phase: 2, Addr: s.Addr},
	} {
		if x, ok := r.Sub(l, s, 8); ok {
			t.Errorf("%s: difference %d", name, x)
		}
		if x, ok := s.Sub(l, r, 8); ok {
			t.Errorf("%s: difference %d the other way", name, x)
		}
	}
}

package extended

import (
	"bytes"
	"testing"

	"github.com/argon-go/argon/segment"
)

// TestShapeAgain: one Shape serves puts and gets, of any rank, and moves what its
// local memory holds at the time.
func TestShapeAgain(t *testing.T) {
	for _, direct := range []bool{true, false} {
		j := newFake(3, fakeOptions{direct: direct, bare: true})
		x := j.eps[0].x
		mem := make([]byte, 6)
		shapes := map[string]func() (Shape, error){
			"strided": func() (Shape, error) {
				return Strided(1, []int{3, 2}, RemoteBox{at(5), []int{-1, -3}}, LocalBox{mem, 0, []int{2, 1}})
			},
			"indexed": func() (Shape, error) {
				return Indexed(RemoteRuns{[]segment.NLA{at(3), at(0)}, 3}, LocalRuns{mem, []int{4, 2, 0}, 2})
			},
			"vector": func() (Shape, error) {
				return Vector([]Extent{{at(4), 2}, {at(0), 4}}, [][]byte{mem[:5], mem[5:]})
			},
		}
		want := map[string]string{"strided": "fdbeca", "indexed": "dabefc", "vector": "cdefab"}
		for name, shape := range shapes {
			s, err := shape()
			if err != nil {
				t.Fatal(err)
			}
			for rank := range 3 {
				clear(j.segs[rank][:8])
				copy(mem, "abcdef")
				if err := x.PutShape(rank, s); err != nil {
					t.Fatal(err)
				}
				if got := string(j.segs[rank][:6]); got != want[name] {
					t.Errorf("direct=%v: %s put to rank %d: %q, want %q", direct, name, rank, got, want[name])
				}
				clear(mem)
				if err := x.GetShape(rank, s); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(mem, []byte("abcdef")) {
					t.Errorf("direct=%v: %s put to rank %d and got: %q", direct, name, rank, mem)
				}
			}
		}
	}
}

// TestShapeNames: errors call a transfer what it is.
func TestShapeNames(t *testing.T) {
	x := newFake(1, fakeOptions{direct: true}).eps[0].x
	v, err := Vector([]Extent{{at(0), 1}}, [][]byte{{1}})
	if err != nil {
		t.Fatal(err)
	}
	_, nb := x.GetShapeNB(5, v)
	for name, err := range map[string]error{
		"extended: vector put: ":              x.PutShape(5, v),
		"extended: non-blocking vector get: ": nb,
		"extended: implicit vector put: ":     x.Implicit().PutShapeNBI(5, v),
		"extended: empty get: ":               x.GetShape(5, Shape{}),
	} {
		if err == nil || !bytes.HasPrefix([]byte(err.Error()), []byte(name)) {
			t.Errorf("%v, want %s...", err, name)
		}
	}
}

package launch

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
)

// FuzzFrame reads what a launcher or a deputy might be sent: frames come out as
// they would be sent again, and nothing else than errors otherwise.
func FuzzFrame(f *testing.F) {
	for _, fr := range []frame{
		{kind: frameHello, nums: []int64{4711}},
		{kind: frameAlive},
		{kind: frameOutput, nums: []int64{3, 1}, texts: [][]byte{[]byte("a line\n")}},
		{kind: frameEndings, nums: []int64{0, -1, 9, 1 << 40, -1 << 62, 7}, texts: [][]byte{nil, []byte("cause")}},
	} {
		b := fr.append(nil)
		f.Add(b)
		f.Add(b[:len(b)-1])
		f.Add(append(b, b...))
	}
	f.Add([]byte{'J', 0xff, 0xff, 0xff, 0xff})                                                  // 4 GiB
	f.Add([]byte{'J', 0, 0, 0, 6, 0xff, 0xff, 0xff, 0xff, 0x0f, 0})                             // as many numbers
	f.Add([]byte{'J', 0, 0, 0, 11, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}) // a text that wraps
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		for {
			fr, err := readFrame(r)
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, errFrame) {
					t.Fatal(err)
				}
				return
			}
			again := fr.append(nil)
			if len(again) > 5+maxFrame {
				return // numbers may have been written longer than need be, not shorter
			}
			other, err := readFrame(bufio.NewReader(bytes.NewReader(again)))
			if err != nil || !same(fr, other) {
				t.Fatalf("%+v became %+v, %v", fr, other, err)
			}
		}
	})
}

func same(a, b frame) bool {
	return a.kind == b.kind && reflect.DeepEqual(a.nums, b.nums) && len(a.texts) == len(b.texts) &&
		func() bool {
			for i := range a.texts {
				if !bytes.Equal(a.texts[i], b.texts[i]) {
					return false
				}
			}
			return true
		}()
}

// FuzzBoot reads what a login on another host prints.
func FuzzBoot(f *testing.F) {
	f.Add("0123 have x86_64")
	f.Add("0123 need aarch64")
	f.Add("Welcome to 0123")
	f.Fuzz(func(t *testing.T, line string) {
		need, ok, err := bootAnswer(line, "0123")
		if (need || err != nil) && !ok {
			t.Fatalf("%q: %v, %v, %v", line, need, ok, err)
		}
	})
}

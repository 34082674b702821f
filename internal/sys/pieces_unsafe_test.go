package sys

import (
	"bytes"
	"os"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// TestPieces copies random pieces of this process's memory, in the way that another one's is
// copied, with a page amid it that is not there: those before the first piece that
// touches it are complete.
func TestPieces(t *testing.T) {
	mem, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	at := uint64(uintptr(unsafe.Pointer(&mem[0])))
	if err := ReadProcess(os.Getpid(), at, make([]byte, 1)); err != nil {
		t.Skipf("memory of processes cannot be read here: %v", err)
	}
	if err := unix.Mprotect(mem[page:2*page], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	var p Pieces // of all checks: nothing stays in it
	rapid.Check(t, func(t *rapid.T) {
		p.Reset()
		seed := byte(rapid.IntRange(1, 255).Draw(t, "seed"))
		for i := range page {
			mem[i], mem[2*page+i] = seed+byte(i), seed+byte(i/7)
		}
		local := make([]byte, 3*page)
		type piece struct{ off, n, at int }
		var all []piece
		whole, used := -1, 0
		for range rapid.IntRange(0, 50).Draw(t, "pieces") {
			n := rapid.IntRange(1, 60).Draw(t, "n")
			off := rapid.OneOf(rapid.IntRange(0, page-n), rapid.IntRange(2*page, 3*page-n), rapid.IntRange(page-n+1, 2*page-1)).Draw(t, "off")
			if off+n > page && off < 2*page && rapid.IntRange(0, 5).Draw(t, "keep") > 0 {
				off = 0
			}
			if whole < 0 && off+n > page && off < 2*page {
				whole = len(all)
			}
			used += rapid.IntRange(0, 1).Draw(t, "gap")
			all = append(all, piece{off, n, used})
			p.Add(at+uint64(off), local[used:used+n])
			used += n
		}
		if p.Len() != len(all) {
			t.Fatalf("%d pieces, want %d", p.Len(), len(all))
		}
		if whole < 0 {
			whole = len(all)
		}
		if got := p.Read(os.Getpid()); got != whole {
			t.Fatalf("%d pieces were read, want %d of %d", got, whole, len(all))
		}
		for _, q := range all[:whole] {
			if !bytes.Equal(local[q.at:q.at+q.n], mem[q.off:q.off+q.n]) {
				t.Fatalf("%d bytes at %d are others", q.n, q.off)
			}
		}
		for i := range used {
			local[i] = byte(i) - seed
		}
		model := bytes.Clone(mem[:page])
		for _, q := range all[:whole] {
			if q.off < page {
				copy(model[q.off:], local[q.at:q.at+q.n])
			}
		}
		if got := p.Write(os.Getpid()); got != whole {
			t.Fatalf("%d pieces were written, want %d of %d", got, whole, len(all))
		}
		if whole == len(all) && !bytes.Equal(model, mem[:page]) {
			t.Fatal("what was written is not what is there")
		}
	})
	p.Reset()
	if n := p.Read(os.Getpid()); n != 0 || p.Len() != 0 {
		t.Errorf("%d pieces of none", n)
	}
	p.Add(at, make([]byte, 1))
	if n := p.Read(1 << 30); n != 0 {
		t.Errorf("%d pieces of a process that there is not", n)
	}
}

// BenchmarkPieces reads pieces of 8 bytes of this process, 1 KiB apart; a b.N is a piece.
func BenchmarkPieces(b *testing.B) {
	mem, local := make([]byte, 1<<20), make([]byte, 8<<10)
	for _, k := range []int{1, 64, 256, 1024} {
		b.Run(strconv.Itoa(k), func(b *testing.B) {
			var p Pieces
			for i := range k {
				p.Add(uint64(uintptr(unsafe.Pointer(&mem[i<<10]))), local[8*i:][:8])
			}
			for i := 0; i < b.N; i += k {
				if n := p.Read(os.Getpid()); n != k {
					b.Fatalf("%d of %d pieces", n, k)
				}
			}
		})
	}
}

package rt

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/gas"
)

// ioName is a file's name that all threads have alike.
func ioName(t *Thread, dir string) *int8 {
	var name [512]byte
	copy(name[:], filepath.Join(dir, "file"))
	name, err := gas.Broadcast(t.n, 0, name)
	t.must(err)
	return (*int8)(unsafe.Pointer(&name[0]))
}

// ioFile is the model of a file.
type ioFile []byte

func (m ioFile) write(at int64, b []byte) ioFile {
	if end := at + int64(len(b)); len(b) > 0 && end > int64(len(m)) {
		m = append(m, make([]byte, end-int64(len(m)))...)
	}
	copy(m[min(at, int64(len(m))):], b)
	return m
}

func (m ioFile) read(at int64, b []byte) int64 { return int64(copy(b, m[min(at, int64(len(m))):])) }

// orders are those in which three threads can come.
var orders = [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}

// TestFiles compares calls on a file, which are drawn, with a sequential model of it: with either file
// pointer, of private memory and of arrays of each thread with different layouts, by lists, asynchronous, with
// different synchronization, and with strong semantics, which make overlapping writes happen one after the other.
func TestFiles(t *testing.T) {
	was := ioPiece
	ioPiece = 20
	defer func() { ioPiece = was }()
	dir, rounds := t.TempDir(), 100
	if testing.Short() {
		rounds = 30
	}
	onEach(t, 3, func(t *Thread) {
		const room = 48 // bytes of an array
		rnd := rand.New(rand.NewPCG(5, 6))
		var m ioFile
		arrays := make([]Phaseless, t.threads)
		for r := range arrays {
			arrays[r] = t.AllAlloc(uint64(t.threads), 2*room)
		}
		name := ioName(t, dir)
		h, err := AllFOpen(t, name, FileReadWrite|FileCreate|FileTrunc|FileIndividual, nil)
		t.must(err)
		f := FileOf(t, Phaseless(h))
		for round := range rounds {
			op := FileOp(rnd.IntN(4))
			flags := flagSets[rnd.IntN(len(flagSets))]
			size := uint64(1 + rnd.IntN(3)) // of an element
			block := uint64(rnd.IntN(6))
			strong, common := rnd.IntN(4) == 0, rnd.IntN(2) == 0
			command := map[bool]FileCommand{true: FileSetStrong, false: FileSetWeak}[strong]
			_, err := f.Control(command, nil)
			t.must(err)
			command = map[bool]FileCommand{true: FileSetCommon, false: FileSetIndividual}[common]
			_, err = f.Control(command, nil)
			t.must(err)
			call := rnd.IntN(4)
			if common && call == 0 {
				call = 1
			}
			common = common && call == 1 // of lists the pointer does not count
			// What each thread moves, and where its array begins: with a phase that does not count.
			type part struct {
				at     int64
				data   []byte
				first  int
				phased Phased
			}
			parts := make([]part, t.threads)
			for r := range parts {
				p := part{at: int64(rnd.IntN(20)), data: make([]byte, int(size)*rnd.IntN(room/3)), first: rnd.IntN(t.threads)}
				if !strong && !common {
					p.at += int64(r * 2 * room) // overlapping writes have no defined effects
				}
				if common && r > 0 {
					p = parts[0]
				}
				for i := range p.data {
					p.data[i] = byte(rnd.Uint32())
				}
				w := MakePhaseless(p.first, arrays[r].Addr()).Wide()
				if common {
					w = MakePhaseless(p.first, arrays[0].Addr()).Wide()
				}
				w.Phase = rnd.IntN(3)
				p.phased, _ = w.Phased()
				parts[r] = p
			}
			if common {
				for r := range parts {
					parts[r] = parts[0]
				}
			}
			own := parts[t.me]
			n := len(own.data)
			place := func(i int) Phaseless { // of the array of this thread
				if block == 0 {
					return own.phased.Phaseless().AddLocal(i, 1)
				}
				return own.phased.ResetPhase().Add(i, int(block*size), 1, t.threads).Phaseless()
			}
			memory := slices.Clone(own.data)
			if op&FileWrite == 0 {
				clear(memory)
			}
			shared := call == 1 || call == 3
			if shared && (!common || t.me == 0) {
				for i, v := range memory {
					Put(t, place(i), v)
				}
			}
			if call < 2 {
				if at, err := f.Seek(own.at-5, io.SeekStart); err != nil != (own.at < 5) || err == nil && at != own.at-5 {
					t.failf("round %d: seek to %d: %d, %v", round, own.at-5, at, err)
				}
				at, err := f.Seek(own.at-int64(len(m)), io.SeekEnd)
				if t.must(err); at != own.at {
					t.failf("round %d: seek to %d by the end: %d", round, own.at, at)
				}
			}
			if flags&(InMySync|InNoSync) != 0 {
				t.BarrierAny()
			}
			half := n / 3 // of lists, which have an entry without bytes
			files := []FileVec{{own.at, uint64(half)}, {-1, 0}, {own.at + int64(half), uint64(n - half)}}
			half = n / 2
			var got int64
			switch call {
			case 0:
				got, err = f.Local(op, unsafe.Pointer(unsafe.SliceData(memory)), size, uint64(n)/size, flags)
			case 1:
				got, err = f.Shared(op, own.phased, block, size, uint64(n)/size, flags)
			case 2:
				got, err = f.ListLocal(op, []LocalVec{
					{unsafe.Pointer(unsafe.SliceData(memory)), uint64(half)},
					{},
					{unsafe.Pointer(unsafe.SliceData(memory[half:])), uint64(n - half)},
				}, files, flags)
			case 3:
				rest := SharedVec{place(half).Phased(), block * size, uint64(n - half)}
				list := []SharedVec{{own.phased, block * size, uint64(half)}, {}, rest}
				if block != 0 { // a block begins with each entry: an entry for each byte
					list = list[:2]
					for i := half; i < n; i++ {
						list = append(list, SharedVec{place(i).Phased(), 3, 1})
					}
				}
				got, err = f.ListShared(op, list, files, flags)
			}
			t.must(err)
			if op&FileAsync != 0 {
				if busy, err := f.Control(FileOutstanding, nil); busy != 1 || err != nil {
					t.failf("round %d: %d operations are under way, %v", round, busy, err)
				}
				if f.Close() != syscall.EBUSY {
					t.failf("round %d: a file is closed while an operation is under way", round)
				}
				var done int32
				if rnd.IntN(2) == 0 {
					got, err = f.Wait()
				} else if got, err = f.Test(&done); done != 1 {
					t.failf("round %d: a test without result", round)
				}
				t.must(err)
			}
			t.BarrierAny()
			// What the model does.
			file, err := os.ReadFile(f.name)
			t.must(err)
			if op&FileWrite == 0 {
				read := make([]byte, n)
				if want := m.read(own.at, read); got != want {
					t.failf("round %d: %d bytes were read, not %d", round, got, want)
				}
				if shared {
					for i := range memory {
						memory[i] = Get[uint8](t, place(i))
					}
				}
				if !bytes.Equal(memory, read) {
					t.failf("round %d: read %v, not %v; call %d, common %v, in blocks of %d of %d", round, memory, read, call, common, block, size)
				}
			} else {
				if got != int64(n) {
					t.failf("round %d: %d bytes were written, not %d", round, got, n)
				}
				var after ioFile
				possible := slices.ContainsFunc(orders, func(order []int) bool {
					after = slices.Clone(m)
					for _, r := range order {
						after = after.write(parts[r].at, parts[r].data)
					}
					return bytes.Equal(after, file)
				})
				if m = after; !possible {
					t.failf("round %d: the file has %v, not %v; call %d, common %v, in blocks of %d of %d", round, file, after, call, common, block, size)
				}
			}
			if !bytes.Equal(m, file) {
				t.failf("round %d: the file has %v, not %v", round, file, m)
			}
			if want := own.at + got; call < 2 {
				if at, err := f.Seek(0, io.SeekCurrent); at != want || err != nil {
					t.failf("round %d: the file pointer is at %d, %v, not %d", round, at, err, want)
				}
			}
			switch to := int64(rnd.IntN(3 * room)); rnd.IntN(6) {
			case 0:
				t.must(f.SetSize(to))
				m = m.write(to, []byte{0})[:to]
			case 1:
				t.must(f.Preallocate(to))
				if to > int64(len(m)) {
					m = m.write(to-1, []byte{0})
				}
			case 2:
				t.must(f.Sync())
			}
			if size, err := f.Size(); size != int64(len(m)) || err != nil {
				t.failf("round %d: the file has %d bytes, %v, not %d", round, size, err, len(m))
			}
		}
		t.must(f.Close())
		if f = FileOf(t, Phaseless(h)); f.Sync() != syscall.EBADF {
			t.failf("a closed file can be used")
		}
	})
}

package shm_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

// rank is one that registers memory: what it knows of the others.
type rank struct {
	ep    conduits.Endpoint
	met   []int    // how many times each has come to meet
	round int      // and this one
	text  []string // long messages that have come
	done  map[uint64]conduits.Event
	value uint64
	errs  map[uint64]error
	next  uint64
}

func (r *rank) Receive(m *conduits.Message) {
	if m.Tag == 7 {
		r.met[m.Src]++
		return
	}
	r.text = append(r.text, string(m.Payload))
}

func (r *rank) Complete(cookie uint64, ev conduits.Event, value uint64, err error) {
	r.done[cookie] |= ev
	r.value = value
	if err != nil {
		r.errs[cookie] = err
	}
}

func join() *rank {
	ep, err := testjob.Join(conduits.Config{})
	testjob.Check(err)
	r := &rank{ep: ep, met: make([]int, ep.Size()), done: map[uint64]conduits.Event{}, errs: map[uint64]error{}}
	testjob.Check(ep.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: r}))
	return r
}

// meet is a barrier.
func (r *rank) meet() {
	r.round++
	for dst := range r.ep.Size() {
		testjob.Check(conduits.Wait(r.ep, nil, func() bool { return r.ep.Send(dst, conduits.Request, 7, nil) == conduits.Ready }))
	}
	testjob.Check(conduits.Wait(r.ep, nil, func() bool {
		for _, n := range r.met {
			if n < r.round {
				return false
			}
		}
		return true
	}))
}

// memory is n bytes of memory of the kind that the program's first argument says.
func (r *rank) memory(n int) []byte {
	if os.Args[1] == "private" {
		return make([]byte, n)
	}
	m, err := r.ep.MapMemory(uint64(n))
	testjob.Check(err)
	return m[:n]
}

// register shows mem to all ranks, and says where theirs is.
func (r *rank) register(mem []byte) (segment.Registration, []segment.NLA) {
	u, err := r.ep.ATU()
	testjob.Check(err)
	g, err := u.Register(mem, segment.RightsAll, segment.AnyPeer)
	testjob.Check(err)
	a, n := g.At(0)
	if n != uint64(len(mem)) {
		testjob.Fatal("%d bytes in pieces", len(mem))
	}
	first, views := r.ep.Views()
	own, _ := views[r.ep.Rank()-first].Bytes(segment.AttachBase, 8, segment.PageSize)
	binary.LittleEndian.PutUint64(own, uint64(a))
	r.meet()
	l := make([]segment.NLA, r.ep.Size())
	for i := range l {
		b, _ := views[i-first].Bytes(segment.AttachBase, 8, segment.PageSize)
		l[i] = segment.NLA(binary.LittleEndian.Uint64(b))
	}
	r.meet()
	return g, l
}

// await waits for what Put and the like have answered.
func (r *rank) await(want, ev conduits.Event, err error) error {
	if err != nil {
		return err
	}
	c := r.next
	if err := conduits.Wait(r.ep, nil, func() bool { return (r.done[c]|ev)&want == want }); err != nil {
		return err
	}
	return r.errs[c]
}

const both = conduits.SourceDone | conduits.RemoteDone

func (r *rank) put(dst int, to segment.NLA, b []byte) error {
	r.next++
	ev, err := post.Put(r.ep, dst, to, b, both, r.next)
	return r.await(both, ev, err)
}

func (r *rank) get(b []byte, src int, from segment.NLA) error {
	r.next++
	ev, err := post.Get(r.ep, b, src, from, conduits.RemoteDone, r.next)
	return r.await(conduits.RemoteDone, ev, err)
}

func (r *rank) add(dst int, to segment.NLA) (uint64, error) {
	r.next++
	v, ev, err := post.Atomic(r.ep, dst, to, conduits.AtomicAdd, conduits.Uint64, 1, 0, r.next)
	if err := r.await(conduits.RemoteDone, ev, err); err != nil || ev != 0 {
		return v, err
	}
	return r.value, nil
}

// asks checks which accesses to 8 aligned bytes of a process's private memory ask it: those of words, where the system
// does not copy these as such.
func (r *rank) asks(dst int, at segment.NLA) {
	var s conduits.Stats
	asked := func(f func() error) uint64 {
		r.ep.Stats(&s)
		before := s.Asked
		testjob.Check(f())
		r.ep.Stats(&s)
		return s.Asked - before
	}
	words := uint64(1)
	if os.Args[2] == "words" || sys.CopiesWords() {
		words = 0
	}
	b := make([]byte, 8)
	for i, c := range []struct {
		want uint64
		do   func() error
	}{
		{0, func() error { return r.put(dst, at, []byte("by bytes")) }},
		{0, func() error { return r.get(b, dst, at) }},
		{words, func() error {
			r.next++
			ev, err := post.PutWord(r.ep, dst, at, binary.NativeEndian.Uint64([]byte("by words")), 8, both, r.next)
			return r.await(both, ev, err)
		}},
		{words, func() error {
			r.next++
			ev, err := r.ep.Post(&conduits.Access{Verb: conduits.Get, Size: 8, Want: conduits.RemoteDone, Rank: dst, At: at, Mem: b, Cookie: r.next})
			return r.await(conduits.RemoteDone, ev, err)
		}},
	} {
		if k := asked(c.do); k != c.want {
			testjob.Fatal("access %d asked the owner %d times, want %d", i, k, c.want)
		}
	}
	if string(b) != "by words" {
		testjob.Fatal("the word that was put is %q", b)
	}
	v, ok := post.GetWordNow(r.ep, dst, at, 8)
	if ok != (words == 0) || ok && v != binary.NativeEndian.Uint64(b) {
		testjob.Fatal("a word got at once: %v, %#x", ok, v)
	}
}

// putMany puts b to n addresses from to on, 8 bytes each and 9 apart, of which only the way by
// itself finds out what is wrong.
func (r *rank) putMany(dst int, to segment.NLA, b []byte) error {
	var pieces []conduits.Piece
	for i := 0; i+8 <= len(b); i += 8 {
		pieces = append(pieces, conduits.Piece{At: to + segment.NLA(i/8*9), Mem: b[i : i+8]})
	}
	for len(pieces) > 0 {
		k := post.PutManyNow(r.ep, dst, pieces)
		if k == 0 {
			if err := r.put(dst, pieces[0].At, pieces[0].Mem); err != nil {
				return err
			}
			k = 1
		}
		pieces = pieces[k:]
	}
	return nil
}

func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
	return b
}

// share has all ranks put to, get from and count in each other's registered memory.
func share() {
	if os.Args[2] == "filtered" {
		filterProcessVM()
	}
	r := join()
	me, n := r.ep.Rank(), r.ep.Size()
	const words, each = 4096, 300_000
	mem := r.memory(words + n*each)
	g, at := r.register(mem)
	for i := range n {
		dst := (me + i) % n
		to := at[dst] + segment.NLA(words+me*each)
		testjob.Check(r.put(dst, to, pattern(each, me)))
		b := make([]byte, each)
		testjob.Check(r.get(b, dst, to))
		if !bytes.Equal(b, pattern(each, me)) {
			testjob.Fatal("what rank %d gives is not what was put", dst)
		}
		testjob.Check(r.putMany(dst, to, pattern(4000, me+5)))
		testjob.Check(r.get(b, dst, to))
		for i, v := range pattern(4000, me+5) {
			if b[i/8*9+i%8] != v {
				testjob.Fatal("byte %d of the pieces that were put to rank %d is %d, want %d", i, dst, b[i/8*9+i%8], v)
			}
		}
		testjob.Check(r.put(dst, to, pattern(each, me)))
		testjob.Check(r.put(dst, at[dst]&^7+segment.NLA(8*(2+me)), binary.LittleEndian.AppendUint64(nil, uint64(me+1))))
	}
	for i := range 3 * n {
		_, err := r.add(i%n, at[i%n]&^7+8)
		testjob.Check(err)
	}
	r.meet()
	off := int(at[me] & 7) // of words in mem
	if v := binary.LittleEndian.Uint64(mem[8-off:]); v != uint64(3*n) {
		testjob.Fatal("%d have been counted, want %d", v, 3*n)
	}
	for src := range n {
		if v := binary.LittleEndian.Uint64(mem[8*(2+src)-off:]); v != uint64(src+1) {
			testjob.Fatal("rank %d's word is %d", src, v)
		}
		if !bytes.Equal(mem[words+src*each:][:each], pattern(each, src)) {
			testjob.Fatal("what rank %d has put is not there", src)
		}
	}
	r.meet()
	dst := (me + 1) % n
	if os.Args[2] == "words" {
		shm.CopyWords(r.ep)
	}
	if os.Args[1] == "private" && (os.Args[2] == "allowed" || os.Args[2] == "words") {
		r.asks(dst, at[dst]&^7+segment.NLA(8*(2+n+me)))
	}
	r.meet()
	// Long messages, to the middle of the memory.
	text := strings.Repeat(fmt.Sprint("from ", me, "; "), 20_000)
	r.next++
	s, ev, st := r.ep.ReservePut(dst, conduits.Request, 0, at[dst]+words, []byte(text), r.next)
	if st != conduits.Ready {
		testjob.Fatal("no credit")
	}
	r.ep.Commit(dst, conduits.Request, s, 1, 0)
	testjob.Check(r.await(conduits.SourceDone, ev, nil))
	testjob.Check(conduits.Wait(r.ep, nil, func() bool { return len(r.text) == 1 }))
	if want := strings.ReplaceAll(text, fmt.Sprint(me), fmt.Sprint((me+n-1)%n)); r.text[0] != want {
		testjob.Fatal("a long message of %d bytes has become %d others", len(want), len(r.text[0]))
	}
	r.meet()
	u, err := r.ep.ATU()
	testjob.Check(err)
	testjob.Check(u.Deregister(g))
	r.meet()
	for dst := range n {
		if err := r.put(dst, at[dst]+100, make([]byte, 100)); !errors.Is(err, segment.ErrFault) {
			testjob.Fatal("put to what was registered at rank %d: %v", dst, err)
		}
	}
	r.meet()
	if os.Args[1] == "mapped" {
		testjob.Check(r.ep.UnmapMemory(mem[:cap(mem)]))
	}
	direct := shm.ReachesInto(r.ep)
	if want := os.Args[1] == "private" && (os.Args[2] == "allowed" || os.Args[2] == "words"); direct != want {
		testjob.Fatal("reaches into other processes: %v, want %v", direct, want)
	}
	fmt.Println("done")
	testjob.Check(r.ep.Close())
	runtime.KeepAlive(mem)
}

// TestProcessesShare: registered memory of other processes, mapped and private,
// and if it is forbidden to reach into these.
func TestProcessesShare(t *testing.T) {
	for _, c := range []struct{ kind, vm string }{
		{"mapped", "allowed"}, {"private", "allowed"}, {"private", "words"}, {"private", "off"}, {"private", "filtered"},
	} {
		for _, n := range []int{2, 5} {
			t.Run(fmt.Sprintf("%s/%s/%d", c.kind, c.vm, n), func(t *testing.T) {
				config := testjob.Config{Args: []string{c.kind, c.vm}}
				if c.vm == "off" {
					config.Env = []string{shm.EnvProcessVM + "=0"}
				}
				allDone(t, testjob.RunConfig(t, n, "share", config))
			})
		}
	}
}

// filterProcessVM has the system calls that reach into other processes answer
// EPERM, as the filters of containers do.
func filterProcessVM() {
	call := map[string][3]uint32{"amd64": {310, 311, 317}, "arm64": {270, 271, 277}}[runtime.GOARCH]
	type instruction struct {
		code   uint16
		jt, jf uint8
		k      uint32
	}
	program := [...]instruction{
		{0x20, 0, 0, 0},          // the system call's number
		{0x15, 1, 0, call[0]},    // process_vm_readv
		{0x15, 0, 1, call[1]},    // process_vm_writev
		{0x06, 0, 0, 0x00050001}, // EPERM
		{0x06, 0, 0, 0x7fff0000}, // allowed
	}
	filter := struct {
		n uint16
		p *instruction
	}{uint16(len(program)), &program[0]}
	const prSetNoNewPrivs, setModeFilter, tsync = 38, 1, 1
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Without privileges the kernel wants to know that none will be gained. What this
	// thread says holds for the others with the filter.
	if _, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); e != 0 {
		testjob.Fatal("prctl: %v", e)
	}
	if _, _, e := syscall.RawSyscall(uintptr(call[2]), setModeFilter, tsync, uintptr(unsafe.Pointer(&filter))); e != 0 {
		testjob.Fatal("seccomp: %v", e)
	}
}

// vanish has rank 0 put many pieces to memory of rank 1 of which a page is unmapped and
// still registered.
func vanish() {
	r := join()
	const page = segment.PageSize
	mem, err := syscall.Mmap(-1, 0, 3*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	testjob.Check(err)
	_, at := r.register(mem)
	if r.ep.Rank() == 1 {
		_, _, e := syscall.Syscall(syscall.SYS_MUNMAP, uintptr(unsafe.Pointer(&mem[page])), page, 0)
		if e != 0 {
			testjob.Fatal("munmap: %v", e)
		}
	}
	r.meet()
	if r.ep.Rank() == 0 {
		many := r.ep
		var pieces []conduits.Piece
		for i := range 3000 {
			pieces = append(pieces, conduits.Piece{At: at[1] + segment.NLA(i%1000*3), Mem: []byte{byte(i), 2}})
		}
		var before, after conduits.Stats
		r.ep.Stats(&before)
		done := 0
		for done < len(pieces) {
			k := post.PutManyNow(many, 1, pieces[done:])
			if k == 0 {
				testjob.Fatal("%d of %d pieces were put", done, len(pieces))
			}
			done += k
		}
		if r.ep.Stats(&after); after.SystemCalls-before.SystemCalls != 3 {
			testjob.Fatal("%d system calls for %d pieces", after.SystemCalls-before.SystemCalls, len(pieces))
		}
		bad := conduits.Piece{At: at[1] + page + 5, Mem: make([]byte, 3)}
		good := conduits.Piece{At: at[1] + 2*page, Mem: []byte("good")}
		across := conduits.Piece{At: at[1] + page - 1, Mem: make([]byte, 2)}
		for _, q := range []conduits.Piece{bad, across} {
			if k := post.PutManyNow(many, 1, []conduits.Piece{good, good, q, good}); k != 2 {
				testjob.Fatal("%d pieces were put before one that is not there, want 2", k)
			}
			for k := range 2 {
				left := []conduits.Piece{q, good}
				if k == 0 && post.PutManyNow(many, 1, left) != 0 || k == 1 && post.GetManyNow(many, 1, left) != 0 {
					testjob.Fatal("a piece that is not there was transferred")
				}
			}
			if err := r.put(1, q.At, q.Mem); !errors.Is(err, segment.ErrFault) {
				testjob.Fatal("put to what is not there: %v", err)
			}
		}
		got := conduits.Piece{At: good.At, Mem: make([]byte, 4)}
		first := conduits.Piece{At: at[1] + 999*3, Mem: make([]byte, 2)}
		if k := post.GetManyNow(many, 1, []conduits.Piece{got, first, bad, good}); k != 2 || string(got.Mem) != "good" || first.Mem[0] != 2999&255 {
			testjob.Fatal("%d pieces were got, the first %q, the second %d", k, got.Mem, first.Mem)
		}
	}
	r.meet()
	fmt.Println("done")
	testjob.Check(r.ep.Close())
	runtime.KeepAlive(mem)
}

// TestProcessesVanish: of many pieces those are transferred that come before one that is not
// there any more, 1024 by a system call.
func TestProcessesVanish(t *testing.T) {
	allDone(t, testjob.Run(t, 2, "vanish"))
}

// strike has rank 0 or rank 1 die while rank 1 accesses rank 0's memory, which
// rank 0, if it lives, takes back.
func strike() {
	signal.Ignore(syscall.SIGTERM) // the launcher's, which would come first
	r := join()
	const size = 16 << 20
	mem := r.memory(size)
	g, at := r.register(mem)
	var err error
	victim := os.Args[3]
	switch r.ep.Rank() {
	case 0:
		if victim == "owner" {
			testjob.Check(r.put(1, at[1], []byte{1}))
			for i := 0; ; i++ {
				r.ep.Poll() // answers, and dies with some answer under way
				if i == 10_000 {
					testjob.Check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
				}
			}
		}
		testjob.Check(conduits.Wait(r.ep, nil, func() bool { return len(r.text) > 0 }))
		u, _ := r.ep.ATU()
		err = u.Deregister(g)
		if err == nil {
			err = conduits.Wait(r.ep, nil, func() bool { return false })
		}
	case 1:
		if victim == "initiator" {
			go func() { // dies in the middle of an access, likely
				for range 50 {
					runtime.Gosched()
				}
				s, _, st := r.ep.ReservePut(0, conduits.Request, 0, segment.AttachBase, []byte("now"), 0)
				if st == conduits.Ready {
					r.ep.Commit(0, conduits.Request, s, 1, 0)
				}
				for range 50 {
					runtime.Gosched()
				}
				testjob.Check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
			}()
		}
		b := pattern(size, 1)
		for err == nil {
			if err = r.put(0, at[0], b); err == nil {
				err = r.putMany(0, at[0], b[:8<<10])
			}
			if err == nil {
				_, err = r.add(0, (at[0]+7)&^7)
			}
			if err == nil {
				err = r.ep.Err()
			}
		}
		if errors.Is(err, segment.ErrFault) {
			err = conduits.Wait(r.ep, nil, func() bool { return false }) // the owner was faster
		}
	default:
		err = conduits.Wait(r.ep, nil, func() bool { return false })
	}
	fmt.Println(err)
	testjob.Check(err)
}

// TestProcessesStrike: whichever rank dies in the middle of an access, the others
// learn it, and no rank waits for ever.
func TestProcessesStrike(t *testing.T) {
	for i, victim := range []string{"owner", "initiator"} {
		for _, how := range []string{"mapped/allowed", "private/allowed", "private/off"} {
			t.Run(victim+"/"+how, func(t *testing.T) {
				kind, vm, _ := strings.Cut(how, "/")
				config := testjob.Config{Args: []string{kind, vm, victim}, KillGrace: time.Hour}
				if vm == "off" {
					config.Env = []string{shm.EnvProcessVM + "=0"}
				}
				r := testjob.RunConfig(t, 3, "strike", config).Want(t, 137)
				if r.Failed != i {
					t.Errorf("rank %d is named, want %d", r.Failed, i)
				}
				for k, out := range r.Stdout {
					out += r.Stderr[k] // where the rank was still in register's barrier
					if k != i && !strings.Contains(out, fmt.Sprintf("rank %d failed", i)) {
						t.Errorf("rank %d says %q", k, out)
					}
				}
				testjob.AssertNoLeftovers(t)
			})
		}
	}
}

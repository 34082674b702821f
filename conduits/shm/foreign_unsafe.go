package shm

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// EnvProcessVM, if it is 0, has a rank not use process_vm_readv and
// process_vm_writev, for where a filter of system calls ends a process that does.
// Where they are merely forbidden a rank finds out.
const EnvProcessVM = "ARGON_SHM_PROCESS_VM"

// peer is how this rank reaches what a rank in another process has registered.
// While it uses a translation it is in one of its units, which the owner waits for
// before it takes memory back.
type peer struct {
	rank   int
	reader segment.Reader
	blind  atomic.Bool   // a table could not be mapped: the owner is asked for everything
	vm     atomic.Uint32 // whether the process's memory can be reached, if that is known
	pid    int
}

// Values of peer.vm.
const (
	vmUnknown = iota
	vmYes
	vmNo
)

// peer finds rank, of another process.
func (mem *memory) peer(rank int) *peer {
	if p := mem.peers[rank-mem.first].Load(); p != nil {
		return p
	}
	return mem.meet(rank)
}

// meet makes rank's tables known to this rank, and this rank to what revokes
// entries there.
func (mem *memory) meet(rank int) *peer {
	reg := mem.j.registry(rank)
	p := &peer{rank: rank}
	p.reader.Directory = segment.DirectoryAt(unsafe.Slice((*byte)(reg), segment.DirectoryBytes))
	p.reader.Open = func(_ int, word uint64) *segment.GAT {
		if word < segment.AddrPrivate>>segment.PageBits {
			if m := mem.j.mapOld(word<<segment.PageBits, segment.GATBytes, false); m != nil {
				return segment.GATAt(unsafe.Slice((*byte)(m), segment.GATBytes))
			}
		}
		p.blind.Store(true)
		return nil
	}
	me := mem.here
	atomic.OrUint32((*uint32)(unsafe.Add(reg, regReaders+me/32*4)), 1<<(me%32))
	if at := &mem.peers[rank-mem.first]; !at.CompareAndSwap(nil, p) {
		return at.Load()
	}
	return p
}

// unit is one of this rank's units.
func (j *job) unit(rank, i int) *uint64 {
	return (*uint64)(unsafe.Add(j.registry(rank), regUnits+i*regUnitStep))
}

// enter begins an access to memory of another process, or returns nil if the
// endpoint is closed.
func (mem *memory) enter() *uint64 {
	i := int(uint64(sys.Goroutine()) * 0x9e3779b97f4a7c15 >> 61)
	for {
		for range numUnits {
			// The swap orders it before the loads of entries: either the owner, which
			// has revoked some, sees the unit inside, or the unit sees them revoked.
			w := (*uint64)(unsafe.Add(mem.units, i%numUnits*regUnitStep))
			if s := atomic.LoadUint64(w); s&1 == 0 && atomic.CompareAndSwapUint64(w, s, s+1) {
				if mem.life.closed.Load() {
					exit(w)
					return nil
				}
				return w
			}
			i++
		}
		runtime.Gosched()
	}
}

// exit ends an access.
func exit(w *uint64) { conc.Release64(w, *w+1) }

// leaveUnits waits until no goroutine of this rank accesses memory of other processes.
// The endpoint is closed.
func (mem *memory) leaveUnits() {
	for i := range numUnits {
		for atomic.LoadUint64(mem.j.unit(mem.rank, i))&1 != 0 {
			mem.j.yield()
		}
	}
}

// access is one to registered memory; mem is nil if the owner has to be asked.
type access struct {
	mem  unsafe.Pointer
	unit *uint64
	own  *segment.Unit
}

// touch has f access the n bytes of x. Private memory of this process may have been
// unmapped before it was deregistered.
func (x *access) touch(n uint64, f func()) bool {
	if x.own == nil {
		f()
		return true
	}
	return segment.Touch(unsafe.Slice((*byte)(x.mem), n), f)
}

func (x *access) finish() {
	if x.own != nil {
		x.own.Exit()
		return
	}
	exit(x.unit)
}

// begin starts an access to n bytes, a word, at address a of rank, which finish ends.
func (mem *memory) begin(rank int, a segment.NLA, n uint64, need segment.Rights) (access, error) {
	if o := mem.owner(rank); o != nil {
		b, u, err := conduits.Admit(o.MadeATU(), mem.rank, a, n, need)
		return access{mem: unsafe.Pointer(unsafe.SliceData(b)), own: u}, err
	}
	p := mem.peer(rank)
	w := mem.enter()
	if w == nil {
		return access{}, errClosed
	}
	m, err := mem.translate(p, a, n, need)
	if m != nil {
		return access{mem: m, unit: w}, nil
	}
	exit(w)
	return access{}, err
}

// direct begins an access to n bytes at address a of rank, which shares this memory,
// by load and store, if that is possible without further ado. exit ends it.
func (mem *memory) direct(rank int, a segment.NLA, n uint64, need segment.Rights) (m unsafe.Pointer, w *uint64) {
	if mem.units == nil {
		return nil, nil
	}
	p := mem.peers[rank-mem.first].Load()
	if p == nil || p.blind.Load() {
		return nil, nil
	}
	if w = mem.enter(); w == nil {
		return nil, nil
	}
	if addr, k, err := p.reader.Translate(mem.vpid, a, n, need); err == nil && k == n {
		if m = mem.j.growth.find(addr, n); m != nil {
			return m, w
		}
	}
	exit(w)
	return nil, nil
}

// transfer copies between buf and memory at address a of rank: to there if need is
// the right to write. ask says that only rank can do it, or, if whole is wanted,
// by one load or store.
func (mem *memory) transfer(rank int, a segment.NLA, buf []byte, need segment.Rights, whole bool) (ask bool, err error) {
	n := uint64(len(buf))
	if o := mem.owner(rank); o != nil {
		b, u, err := conduits.Admit(o.MadeATU(), mem.rank, a, n, need)
		if err != nil {
			return false, err
		}
		if !segment.Touch(b, func() { carry(unsafe.Pointer(unsafe.SliceData(b)), buf, a, need) }) {
			err = segment.Gone(mem.rank, a, n, need)
		}
		u.Exit()
		return false, err
	}
	p := mem.peer(rank)
	w := mem.enter()
	if w == nil {
		return false, errClosed
	}
	m, err := mem.translate(p, a, n, need)
	switch {
	case m != nil:
		carry(m, buf, a, need)
	case err != nil:
	case whole && !(mem.words && len(buf) == 8 && a%8 == 0), p.blind.Load():
		ask = true
	default:
		ask, err = mem.pieces(p, a, buf, need)
	}
	exit(w)
	return ask, err
}

// translate checks an access to n bytes at a of p, and finds them if they lie in
// one piece where this process has them or can map them.
func (mem *memory) translate(p *peer, a segment.NLA, n uint64, need segment.Rights) (unsafe.Pointer, error) {
	if p.blind.Load() {
		return nil, nil
	}
	addr, k, err := p.reader.Translate(mem.vpid, a, n, need)
	if err != nil {
		if p.blind.Load() {
			err = nil // perhaps it lies in the table that is not seen
		}
		return nil, err
	}
	if k == n && addr < segment.AddrPrivate {
		if m, k := mem.j.growth.chunk(addr, n); k == n {
			return m, nil
		}
	}
	return nil, nil
}

// pieces is transfer for what may lie in several pieces, and may be private to p.
// All of it has been found permitted.
func (mem *memory) pieces(p *peer, a segment.NLA, buf []byte, need segment.Rights) (ask bool, err error) {
	for len(buf) > 0 {
		addr, k, err := p.reader.Next(mem.vpid, a, uint64(len(buf)), need)
		if err != nil {
			return false, err
		}
		if addr&segment.AddrPrivate != 0 {
			err := mem.reachInto(p, addr&^segment.AddrPrivate, buf[:k], need)
			switch {
			case errors.Is(err, sys.ErrForbidden):
				return true, nil
			case errors.Is(err, sys.ErrNoProcess):
				return false, &conduits.PeerError{Rank: p.rank, Err: errors.New("its process has ended")}
			case err != nil:
				return false, fmt.Errorf("%w: %d bytes at %v: registered, but not there any more: %w", segment.ErrFault, k, a, err)
			}
		} else {
			var m unsafe.Pointer
			if m, k = mem.j.growth.chunk(addr, k); m == nil {
				return true, nil
			}
			carry(m, buf[:k], a, need)
		}
		buf, a = buf[k:], a+segment.NLA(k)
	}
	return false, nil
}

// reachInto copies between buf and p's private memory.
func (mem *memory) reachInto(p *peer, addr uint64, buf []byte, need segment.Rights) error {
	if !mem.reachable(p) {
		return sys.ErrForbidden
	}
	// The number of a process that has ended may become another's, though not
	// before its parent knows that it has.
	if mem.j.hasFailed() {
		return sys.ErrNoProcess
	}
	mem.calls.Add(1)
	if need == segment.RightWrite {
		return sys.WriteProcess(p.pid, addr, buf)
	}
	return sys.ReadProcess(p.pid, addr, buf)
}

// reachable reports whether p's process may be reached into.
func (mem *memory) reachable(p *peer) bool {
	if p.vm.Load() == vmUnknown {
		mem.probe(p)
	}
	return p.vm.Load() == vmYes
}

// probe finds out whether p's process is the one that this process knows by p's
// number for it, and may reach into: it has the bytes there that it says.
func (mem *memory) probe(p *peer) {
	reg := mem.j.registry(p.rank)
	pid := int(atomic.LoadUint32((*uint32)(unsafe.Add(reg, regPid))))
	at := *(*uint64)(unsafe.Add(reg, regProbe))
	var there [regCookieBytes]byte
	v := uint32(vmNo)
	if pid != 0 && os.Getenv(EnvProcessVM) != "0" && !mem.noVM &&
		sys.ReadProcess(pid, at, there[:]) == nil &&
		there == *(*[regCookieBytes]byte)(unsafe.Add(reg, regCookie)) {
		v = vmYes
	}
	mem.probing.Lock()
	defer mem.probing.Unlock()
	if p.vm.Load() == vmUnknown {
		p.pid = pid
		p.vm.Store(v)
	}
}

// present lets other processes reach into this one. It comes before Attach.
func (mem *memory) present() {
	mem.words = sys.CopiesWords()
	mem.cookie = new([regCookieBytes]byte)
	_, _ = rand.Read(mem.cookie[:]) // never fails
	reg := mem.j.registry(mem.rank)
	*(*[regCookieBytes]byte)(unsafe.Add(reg, regCookie)) = *mem.cookie
	*(*uint64)(unsafe.Add(reg, regProbe)) = uint64(uintptr(unsafe.Pointer(mem.cookie)))
	atomic.StoreUint32((*uint32)(unsafe.Add(reg, regPid)), uint32(os.Getpid()))
}

// atuConfig is that of this rank's ATU, whose attach segment is v.
func (mem *memory) atuConfig(v segment.View, a *conduits.AttachConfig) segment.ATUConfig {
	c := segment.ATUConfig{Attach: unsafe.Slice((*byte)(v.Base), v.Size()), Rights: a.Rights, Lock: a.Lock}
	if mem.j.local == nil {
		c.Place, c.Frames, c.Registrar = mem.placeTable, &mem.frames, flusher{mem}
		c.Count = (*atomic.Uint64)(unsafe.Add(mem.j.registry(mem.rank), regCount))
	}
	return c
}

// placeTable makes room for a table where other processes find it.
func (mem *memory) placeTable(gat int) *segment.GAT {
	m, r, err := mem.j.mapNew(segment.GATBytes)
	if err != nil {
		return nil
	}
	d := segment.DirectoryAt(unsafe.Slice((*byte)(mem.j.registry(mem.rank)), segment.DirectoryBytes))
	d[gat].Store(r.off >> segment.PageBits)
	return segment.GATAt(unsafe.Slice((*byte)(m), segment.GATBytes))
}

// registrars are two that are told the same.
type registrars [2]segment.Registrar

// Register tells both.
func (b registrars) Register(r segment.Run) error {
	if err := b[0].Register(r); err != nil {
		return err
	}
	err := b[1].Register(r)
	if err != nil {
		b[0].Deregister(r)
	}
	return err
}

// Deregister waits for both.
func (b registrars) Deregister(r segment.Run) {
	b[0].Deregister(r)
	b[1].Deregister(r)
}

// flusher has deregistrations wait for units of other processes, too.
type flusher struct{ *memory }

func (flusher) Register(segment.Run) error { return nil }

// Deregister returns when no other process is in an access that may have begun
// before the entries were revoked.
func (f flusher) Deregister(r segment.Run) {
	for i := range f.j.n {
		w := atomic.LoadUint32((*uint32)(unsafe.Add(f.j.registry(f.rank), regReaders+i/32*4)))
		if w>>(i%32)&1 == 0 {
			continue
		}
		for k := range numUnits {
			if owner := f.j.rank(i); !f.await(owner, f.j.unit(owner, k)) {
				keep(r.Mem)
				return
			}
		}
	}
}

// await waits for a unit of rank's. It gives up, and returns false, if there may be
// no process any more that will leave it.
func (mem *memory) await(rank int, unit *uint64) bool {
	s := atomic.LoadUint64(unit)
	if s&1 == 0 {
		return true
	}
	if mem.lost.is(unit, s) {
		return false
	}
	gone := 0
	for i := 0; atomic.LoadUint64(unit) == s; i++ {
		if i < 100 { // about what the copy of a page takes
			continue
		}
		if mem.j.hasFailed() || conduits.RankState(atomic.LoadUint32(mem.j.c32(rank, ctlState))) >= conduits.RankFinished {
			if gone++; gone > mostPatience {
				mem.lost.note(unit, s)
				return false
			}
		}
		runtime.Gosched()
		sys.Yield()
	}
	return true
}

// mostPatience is how many yields a rank that may not be there any more is waited
// for.
const mostPatience = 10_000

// lostUnits are the accesses that were waited for and did not end, which need not be
// once more at each deregistration: units, and what they held.
type lostUnits struct {
	mu sync.Mutex
	at map[*uint64]uint64
}

func (l *lostUnits) is(unit *uint64, s uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, ok := l.at[unit]
	return ok && was == s
}

func (l *lostUnits) note(unit *uint64, s uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		l.at = map[*uint64]uint64{}
	}
	l.at[unit] = s
}

// kept is memory that a process which is not there any more, or was stopped, was
// accessing when it was deregistered. It stays, lest it become something else.
var kept struct {
	sync.Mutex
	mem [][]byte
}

func keep(mem []byte) {
	kept.Lock()
	defer kept.Unlock()
	kept.mem = append(kept.mem, mem)
}

// isKept reports whether some of mem, which is mapped, is kept.
func isKept(mem []byte) bool {
	kept.Lock()
	defer kept.Unlock()
	from := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	for _, k := range kept.mem {
		at := uintptr(unsafe.Pointer(unsafe.SliceData(k)))
		if at < from+uintptr(len(mem)) && from < at+uintptr(len(k)) {
			return true
		}
	}
	return false
}

package shm

import (
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/place"
	"github.com/argon-go/argon/segment"
)

func init() {
	conduits.Register(conduits.Conduit{
		Name: "shm", Local: Local, Join: Join,
		Launch: &conduits.Launch{Memory: LaunchMemory}, // its own error says more of too many ranks
	})
}

// placeIn is rank's place among the n ranks of p, and whether it is one of them.
func placeIn(p conduits.Part, rank, n int) (i int, ok bool) {
	if p.Ranks != nil {
		return slices.BinarySearch(p.Ranks, rank)
	}
	i = rank - p.First
	return i, i >= 0 && i < n
}

// whole is the Part of a job of n ranks that all share memory.
func whole(n int) conduits.Part { return conduits.Part{Size: n, Conduit: "shm"} }

func checkPart(p conduits.Part, n int) error {
	if p.Ranks != nil {
		return checkRanks(p, n)
	}
	if p.First < 0 || p.First+n > p.Size {
		return errs.BadArg("shm: ranks %d to %d are not all of a job of %d", p.First, p.First+n-1, p.Size)
	}
	return nil
}

func checkRanks(p conduits.Part, n int) error {
	if len(p.Ranks) != n {
		return errs.BadArg("shm: the numbers of %d ranks for %d", len(p.Ranks), n)
	}
	last := -1
	for _, r := range p.Ranks {
		if r <= last || r >= p.Size {
			return errs.BadArg("shm: ranks %v do not ascend, or are not all of a job of %d", p.Ranks, p.Size)
		}
		last = r
	}
	return nil
}

// job is the memory that ranks of a job share, as this process sees it. The
// memory itself does not know where in the job they stand: what its methods call
// rank is a number in the job, what lies in the memory goes by places, 0 to n-1, in
// the order of those numbers. Tables that every message needs go by rank-first, with
// gaps for ranks that are elsewhere, so that there is no place to be looked up.
type job struct {
	geometry
	first, size int
	span        int     // numbers from the lowest of the ranks to the highest
	ranks       []int   // by place; nil if they are consecutive, as is places
	places      []int32 // by rank-first, -1 where a rank is elsewhere
	conduit     string
	base        unsafe.Pointer   // processes: the mapping; the header is its first page
	ctls        []unsafe.Pointer // control blocks by rank-first, nil where a rank is elsewhere
	ports       unsafe.Pointer   // the blocks of lanes but the first, see laneOffset
	// In one process the parts are separate pieces of the Go heap.
	header   unsafe.Pointer
	local    *localJob
	growth   growth // processes
	launcher bool   // this process is no rank of the job, see JobMemory
	crowded  bool   // this process's ranks have no processor each

	failMu sync.Mutex
	noted  map[int]bool // failure records that this process has written, by number
	watch  watcher
}

// localJob has the state of an in-process job beyond the layout.
type localJob struct {
	mu       sync.Mutex             // guards talks, staging and the making of segments
	talks    map[int]unsafe.Pointer // by talkIndex of places, made on first contact
	staging  []unsafe.Pointer       // by place, made when first asked for
	segments []unsafe.Pointer
	sleepers []sleeper   // by lane*n+place
	eps      []*Endpoint // by place, as segments
	outside  bool
	reserved []reserved
}

// reserved is a mapping of reserve, and the cleanup that unmaps it if nothing else does.
type reserved struct {
	p       unsafe.Pointer
	size    int64
	cleanup runtime.Cleanup
}

// sleeper is where the goroutines of one in-process rank sleep.
type sleeper struct {
	mu   sync.Mutex
	cond *sync.Cond
}

// block returns n zero bytes of the Go heap, aligned to a page.
func block(n int) unsafe.Pointer {
	b := make([]uint64, (n+segment.PageSize)/8)
	p := unsafe.Pointer(unsafe.SliceData(b))
	return unsafe.Add(p, -uintptr(p)&(segment.PageSize-1))
}

// Local opens a job of n ranks inside this process. Everything lies in the Go
// heap. c.MaxSegment 0 means as much as a rank asks for.
func Local(n int, c conduits.Config) ([]conduits.Endpoint, error) {
	return conc.UpcastSlice[conduits.Endpoint](LocalPart(n, whole(n), c))
}

// LocalPart is Local for n of the ranks of a job that runs in this process as a
// whole.
func LocalPart(n int, part conduits.Part, c conduits.Config) ([]*Endpoint, error) {
	if err := checkSize(n); err != nil {
		return nil, err
	}
	if err := checkPart(part, n); err != nil {
		return nil, err
	}
	maxSegment := int64(segment.MaxAttach)
	if c.MaxSegment != 0 {
		maxSegment = int64(min(c.MaxSegment, uint64(segment.MaxAttach)))
	}
	g, err := geometryFor(n, maxSegment).configure(c)
	if err != nil {
		return nil, err
	}
	j := newJob(g, part, nil, block(hdrBytes))
	j.local = &localJob{
		talks:    map[int]unsafe.Pointer{},
		staging:  make([]unsafe.Pointer, n),
		segments: make([]unsafe.Pointer, n),
		sleepers: make([]sleeper, n*g.lanes),
		outside:  part.Outside,
	}
	ctl := block(n * ctlBytes)
	for r := range n {
		j.ctls[j.rank(r)-j.first] = unsafe.Add(ctl, r*ctlBytes)
	}
	if g.lanes > 1 {
		j.ports = block(g.laneOffset(0, g.lanes))
	}
	for i := range j.local.sleepers {
		j.local.sleepers[i].cond = sync.NewCond(&j.local.sleepers[i].mu)
	}
	j.crowded = part.Size > min(runtime.GOMAXPROCS(0), sys.Processors())
	j.initHeader(j.crowded)
	eps := make([]*Endpoint, n)
	for i := range eps {
		eps[i] = newEndpoint(j, j.rank(i))
	}
	j.local.eps = eps
	return eps, nil
}

func newJob(g geometry, part conduits.Part, base, header unsafe.Pointer) *job {
	j := &job{geometry: g, first: part.First, size: part.Size, span: g.n, conduit: part.Conduit, base: base, header: header}
	if r := part.Ranks; r != nil {
		j.first, j.span = r[0], r[g.n-1]-r[0]+1
		if j.span > g.n {
			j.ranks, j.places = r, make([]int32, j.span)
			for i := range j.places {
				j.places[i] = -1
			}
			for i, r := range r {
				j.places[r-j.first] = int32(i)
			}
		}
	}
	j.ctls = make([]unsafe.Pointer, j.span)
	if base != nil {
		for i := range g.n {
			j.ctls[j.rank(i)-j.first] = unsafe.Add(base, g.ctlOffset(i))
		}
		j.ports = unsafe.Add(base, g.ctlOffset(g.n))
	}
	return j
}

// rank is the number in the job of the rank at place i.
func (j *job) rank(i int) int {
	if i < len(j.ranks) {
		return j.ranks[i]
	}
	return j.first + i
}

// place is that of rank, which has to share this memory.
func (j *job) place(rank int) int {
	if j.places != nil {
		return int(j.places[rank-j.first])
	}
	return rank - j.first
}

// has reports whether rank shares this memory.
func (j *job) has(rank int) bool {
	i := uint(rank - j.first)
	return i < uint(j.span) && (j.places == nil || j.places[i] >= 0)
}

// initHeader writes the header. crowded says that there are more ranks than
// processors.
func (j *job) initHeader(crowded bool) {
	*j.h32(hdrVersion) = version
	*j.h32(hdrSize) = uint32(j.n)
	*j.h32(hdrCells) = uint32(j.cells)
	*j.h32(hdrLanding) = uint32(j.landing)
	*j.h32(hdrLanes) = uint32(j.lanes)
	*(*uint64)(unsafe.Add(j.header, hdrSegment)) = uint64(j.segment)
	*(*uint64)(unsafe.Add(j.header, hdrEnd)) = uint64(j.total())
	// With more ranks than processors sleeping is frequent and sends compete
	// with it for the same processor: a fence of 5 ns at each send is then
	// cheaper than a membarrier of 2 to 8 us at each nap.
	if conc.PlainRelease && (crowded || !sys.HasMembarrier()) {
		*j.h32(hdrFence) = 1
	}
	*(*uint64)(unsafe.Add(j.header, hdrMagic)) = magic
}

// Join opens this process's rank of a job whose memory a launcher made. It
// reads ARGON_SEGFD by jb.Env.
func Join(jb conduits.Job, c conduits.Config) (conduits.Endpoint, error) {
	s := jb.Env(jobenv.SegFD)
	fd, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return nil, errs.Misstarted(errs.BadArg("shm: ARGON_SEGFD=%q is no file descriptor; ranks are started by gasrun", s))
	}
	e, err := JoinPart(int(fd), jb.Rank, jb.Size, whole(jb.Size))
	if err != nil {
		return nil, errs.Misstarted(err) // and no Endpoint that is a nil pointer
	}
	return e, nil
}

// JoinPart opens this process's rank of a job whose memory, that of n ranks, is
// file descriptor fd. rank is its number in the job.
func JoinPart(fd, rank, n int, part conduits.Part) (*Endpoint, error) {
	if err := checkPart(part, n); err != nil {
		return nil, err
	}
	// Beyond the end of a file its mapping cannot be read: look at the size first.
	size, err := sys.FileSize(uintptr(fd))
	if err != nil {
		return nil, errs.BadArg("shm: ARGON_SEGFD=%d is not a job's memory: %v", fd, err)
	}
	if size < hdrBytes {
		return nil, errs.BadArg("shm: ARGON_SEGFD=%d is not a job's memory: it has %d bytes", fd, size)
	}
	page, err := sys.Map(uintptr(fd), hdrBytes)
	if err != nil {
		return nil, errs.BadArg("shm: ARGON_SEGFD=%d is not a job's memory: %v", fd, err)
	}
	peek := &job{header: page}
	if *(*uint64)(unsafe.Add(page, hdrMagic)) != magic || *peek.h32(hdrVersion) != version {
		sys.Unmap(page, hdrBytes)
		return nil, errs.BadArg("shm: ARGON_SEGFD=%d is not the memory of a job of this version of argon: gasrun and the program must be built from the same one", fd)
	}
	g := geometry{
		n:       int(*peek.h32(hdrSize)),
		cells:   int(*peek.h32(hdrCells)),
		landing: int(*peek.h32(hdrLanding)),
		lanes:   int(*peek.h32(hdrLanes)),
		segment: int64(*(*uint64)(unsafe.Add(page, hdrSegment))),
	}
	sys.Unmap(page, hdrBytes)
	if !g.sound() || g.total() > size {
		return nil, errs.BadArg("shm: ARGON_SEGFD=%d: damaged header, or a file cut short: %+v in %d bytes", fd, g, size)
	}
	if i, ok := placeIn(part, rank, n); n != g.n || !ok {
		return nil, errs.BadArg("shm: rank %d of %d does not exist: the job's memory was made for %d ranks (ARGON_RANK, ARGON_SIZE)", i, n, g.n)
	}
	p, err := sys.Map(uintptr(fd), g.total())
	if err != nil {
		return nil, errs.Resource("shm: %v; %d ranks with segments of up to %d bytes (-segment, ARGON_SEGMENT)", err, g.n, g.segment)
	}
	j := newJob(g, part, p, p)
	j.crowded = !conc.HaveProcessors(n)
	if err := j.growth.open(uintptr(fd), g.total()); err != nil {
		sys.Unmap(p, g.total())
		return nil, err
	}
	if !atomic.CompareAndSwapUint32(j.c32(rank, ctlJoined), 0, 1) {
		st := conduits.RankState(atomic.LoadUint32(j.c32(rank, ctlState)))
		j.unmap()
		return nil, errs.BadArg("shm: rank %d is taken by another process: it is %v (ARGON_RANK)", rank, st)
	}
	if node, ok := place.OwnNode(); ok {
		j.lieOn(node, j.place(rank))
	}
	return newEndpoint(j, rank), nil
}

// lieOn has what the rank at a place reads lie on a memory node: its blocks, the conversations in
// which it answers, its staging, and its segment. Peers may be the first to touch all of these. Where the system does not
// allow that (mbind(2); a filter of system calls) they lie where they are touched first.
func (j *job) lieOn(node, at int) {
	prefer := func(from, size int64) { _ = sys.PreferNode(unsafe.Add(j.base, from), size, node) }
	prefer(j.ctlOffset(at), ctlBytes)
	prefer(j.regOffset(at), regBytes)
	for lane := range j.lanes {
		for src := range j.n {
			prefer(j.talkOffset(src, at, lane), int64(j.geometry.talk()))
		}
	}
	prefer(j.stagingOffset(at), int64(j.staging()))
	if j.segment > 0 {
		prefer(j.segmentOffset(at), j.segment)
	}
}

// h32 is a word of the header.
func (j *job) h32(off int) *uint32 { return (*uint32)(unsafe.Add(j.header, off)) }

// ctl is the control block of rank.
func (j *job) ctl(rank int) unsafe.Pointer { return j.ctls[rank-j.first] }

// c32 is a word of rank's control block.
func (j *job) c32(rank, off int) *uint32 { return (*uint32)(unsafe.Add(j.ctl(rank), off)) }

// port is the block of a lane of rank; the first lane's is the control block.
func (j *job) port(rank, lane int) unsafe.Pointer {
	if lane == 0 {
		return j.ctl(rank)
	}
	return unsafe.Add(j.ports, j.laneOffset(j.place(rank), lane))
}

// p32 is a word of the block of a lane of rank.
func (j *job) p32(rank, lane, off int) *uint32 {
	return (*uint32)(unsafe.Add(j.port(rank, lane), off))
}

// registry is rank's; there are none in one process.
func (j *job) registry(rank int) unsafe.Pointer {
	return unsafe.Add(j.base, j.regOffset(j.place(rank)))
}

// talk is the conversation of requests from src to dst in a lane.
func (j *job) talk(src, dst, lane int) unsafe.Pointer {
	src, dst = j.place(src), j.place(dst)
	l := j.local
	if l == nil {
		return unsafe.Add(j.base, j.talkOffset(src, dst, lane))
	}
	i := j.talkIndex(src, dst, lane)
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.talks[i]
	if p == nil {
		p = block(j.geometry.talk())
		l.talks[i] = p
	}
	return p
}

// stagingOf is the staging area of rank.
func (j *job) stagingOf(rank int) unsafe.Pointer {
	l, i := j.local, j.place(rank)
	if l == nil {
		return unsafe.Add(j.base, j.stagingOffset(i))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.staging[i] == nil {
		l.staging[i] = block(j.geometry.staging())
	}
	return l.staging[i]
}

// reserve takes memory outside the Go heap for rank's segment. Release unmaps it, or, if
// that is not called, the collector when it finds the job.
func (j *job) reserve(rank int, size uint64) error {
	if size == 0 {
		return nil
	}
	p, err := sys.Reserve(int64(size))
	if err != nil {
		return errs.Resource("shm: a segment of %d bytes: %v (-segment, ARGON_SEGMENT)", size, err)
	}
	c := runtime.AddCleanup(j, func(p unsafe.Pointer) { _ = sys.Unmap(p, int64(size)) }, p)
	j.local.mu.Lock()
	j.local.segments[j.place(rank)] = p
	j.local.reserved = append(j.local.reserved, reserved{p, int64(size), c})
	j.local.mu.Unlock()
	return nil
}

// Release unmaps the segments of the ranks of a LocalPart with Part.Outside. To be
// called by the conduit that asked for it, for any one of them, when all of them are
// closed and it accesses their memory no more.
func (e *Endpoint) Release() {
	l := e.j.local
	for _, e := range l.eps {
		e.shutWindow()
		clear(e.views)
		clear(e.window)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.reserved {
		r.cleanup.Stop()
		_ = sys.Unmap(r.p, r.size)
	}
	l.reserved = nil
}

// segmentBase makes or finds the memory of rank's segment.
func (j *job) segmentBase(rank int) unsafe.Pointer {
	l, i := j.local, j.place(rank)
	if l == nil {
		return unsafe.Add(j.base, j.segmentOffset(i))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.segments[i] == nil {
		size := *(*uint64)(unsafe.Add(j.ctl(rank), ctlSegment))
		l.segments[i] = block(int(size))
	}
	return l.segments[i]
}

// rouseAll is rouse for all ranks, which may find that they will not be answered any
// more.
func (j *job) rouseAll() {
	for i := range j.n {
		r := j.rank(i)
		for lane := range j.lanes {
			atomic.AddUint32(j.p32(r, lane, ctlOpenSeq), 1)
			j.rouse(r, lane)
		}
	}
}

// rouse wakes the goroutines of a lane of rank that are asleep or about to be.
func (j *job) rouse(rank, lane int) {
	seq := j.p32(rank, lane, ctlSeq)
	if j.local == nil {
		atomic.AddUint32(seq, 1)
		sys.FutexWake(seq)
		return
	}
	s := &j.local.sleepers[lane*j.n+j.place(rank)]
	s.mu.Lock()
	atomic.AddUint32(seq, 1)
	s.cond.Broadcast()
	s.mu.Unlock()
}

// sleep returns when the lane of rank has been roused since its ctlSeq was seq.
func (j *job) sleep(rank, lane int, seq uint32) {
	word := j.p32(rank, lane, ctlSeq)
	if j.local == nil {
		sys.FutexWait(word, seq)
		return
	}
	s := &j.local.sleepers[lane*j.n+j.place(rank)]
	s.mu.Lock()
	for atomic.LoadUint32(word) == seq {
		s.cond.Wait()
	}
	s.mu.Unlock()
}

package main

import (
	"slices"
	"strings"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/segment"
)

// Each rank brings a control page, with the flags of the ping-pongs, and a data
// area that the others put to.
const (
	pageSize = segment.PageSize
	dataSize = 4 << 20
	flagGap  = 256 // bytes between the two flags: not the same line, nor its neighbour
)

// job is one rank's side of the benchmark.
type job struct {
	n *gas.Node
	e *am.Messenger
	x *extended.Initiator
	s *state

	area  gas.Ptr[byte] // the calling rank's control page; dataSize bytes follow
	own   []byte        // that page and those bytes
	local []byte        // private memory of dataSize bytes
	clock float64       // ns that timing a sample costs

	direct bool       // ranks 0 and 1 reach each other's memory by load and store
	flags  [2]*uint64 // of rank 0 and of rank 1, both in the segment of rank 0; if direct
	round  uint64     // what the flags hold; the same on both ranks between commands

	auth     string   // how the conduit seals datagrams; "" if it sends none
	datagram int      // the most bytes of one; 0 if it sends none
	sockets  *sockets // nil until they are needed
	ping     uint64   // number of the last ping

	bare *bare // nil until it is needed

	goroutines []goroutine // from the second on

	table   *wordTable // of updates; nil until it is needed, as what follows
	dist    *containers
	threads *upcJob
	team    *gas.Team
	reverse *gas.Team
	blocks  [2][]uint64 // of collective calls
	turns   int         // how many of these there have been

	far     far           // rank 0: what rank 1 has exposed, once that is needed
	spare   []byte        // for copies of more than dataSize bytes
	mapped  [][]byte      // memory of MapMemory
	exposed []segment.NLA // by this rank
}

// data is the address of the data area, the same on all ranks.
func (j *job) data() segment.NLA { return j.area.NLA() + pageSize }

// word points to the data area of the other rank.
func (j *job) word() gas.Ptr[uint64] {
	p, err := gas.Cast[uint64](j.area.Add(pageSize).On(1))
	if err != nil {
		panic("gasbench: " + err.Error()) // pages are aligned
	}
	return p
}

// state is a rank's state for handlers; they find it by the rank, because one
// process may hold several.
type state struct {
	pongs   uint64 // answers that have arrived
	payload []byte // what medium and long replies carry
	cmd     command
	pending bool
	address string             // of the other rank's sockets or endpoint, until it is taken
	answer  []uint32           // to inquire; nil until it is there
	pinners map[string]*pinner // by kind of memory
	_       [32]byte
}

var states [1 << 10]state

// command tells a rank what to do besides waiting.
type command struct {
	what  uint32
	count uint64
	size  int
}

const (
	cmdQuit = iota
	cmdLine
	cmdCopy
	cmdBarrier
	cmdSockets
	cmdPings
	cmdMessages
	cmdStream
	cmdExpose
	cmdPins
	cmdJoint
	cmdTasks
	cmdBare
	cmdBarePings
	cmdBareMessages
	cmdBareWrites
)

const (
	hCommand am.HandlerID = am.FirstClient + iota
	hPing
	hPong
	hSink
	hAddress
	hAnswer
	hPin
)

// handlers are the same on all ranks.
var handlers = []am.Entry{
	{Index: hCommand, Name: "command", Fn: onCommand, Args: 4, Kinds: am.Short | am.Request},
	{Index: hPing, Name: "ping", Fn: onPing, Args: am.AnyArgs, Kinds: am.Request},
	{Index: hPong, Name: "pong", Fn: onPong, Args: am.AnyArgs, Kinds: am.Reply},
	{Index: hSink, Name: "sink", Fn: func(*am.Token, []uint32, []byte) {}, Args: am.AnyArgs, Kinds: am.Request},
	{Index: hAddress, Name: "address", Fn: onAddress, Kinds: am.Medium | am.Request},
	{Index: hAnswer, Name: "answer", Fn: onAnswer, Args: am.AnyArgs, Kinds: am.Short | am.Request},
	{Index: hPin, Name: "pin", Fn: onPin, Args: 1, Kinds: am.Short | am.Request},
}

func onCommand(t *am.Token, args []uint32, _ []byte) {
	s := &states[t.Messenger().Rank()]
	s.cmd = command{what: args[0], count: am.Unpack64(args[1], args[2]), size: int(args[3])}
	s.pending = true
}

// onAnswer keeps what inquire waits for.
func onAnswer(t *am.Token, args []uint32, _ []byte) {
	states[t.Messenger().Rank()].answer = slices.Clone(args)
}

// onPing answers in kind. An error is the job's failure, which all ranks learn
// of by other ways.
func onPing(t *am.Token, args []uint32, payload []byte) {
	switch k := t.Kind(); {
	case k&am.Short != 0:
		_ = t.ReplyShort(hPong, args...)
	case k&am.Medium != 0:
		_ = t.ReplyMedium(hPong, states[t.Messenger().Rank()].payload[:len(payload)], args...)
	default:
		_ = t.ReplyLong(hPong, t.To(), states[t.Messenger().Rank()].payload[:len(payload)], args...)
	}
}

// onPong runs on rank 0 only.
func onPong(*am.Token, []uint32, []byte) { states[0].pongs++ }

func newJob(n *gas.Node) (*job, error) {
	j := &job{n: n, e: n.Layers().AM, x: n.Layers().Extended, s: &states[n.Rank()%len(states)], local: make([]byte, dataSize)}
	for i := range j.local {
		j.local[i] = byte(i) // pages that exist
	}
	*j.s = state{payload: j.local, pinners: map[string]*pinner{}}
	// A page more than needed makes room to begin at a page.
	p, err := gas.NewSlice[byte](n, 2*pageSize+dataSize)
	if err != nil {
		return nil, err
	}
	j.area = p.Add(int(-p.Offset() % pageSize))
	j.own, _ = j.area.LocalSlice(n, pageSize+dataSize) // the own segment always is
	clear(j.own)
	if n.Rank() < 2 {
		_, j.direct = j.area.On(1-n.Rank()).LocalSlice(n, pageSize+dataSize)
	}
	if j.direct {
		j.flags = flagsAt(n, j.area.On(0))
	}
	j.auth, j.datagram = j.sealing()
	j.clock = clockCost()
	return j, n.Barrier()
}

// sealing is how the conduit protects datagrams and how large they are, "" and 0
// if ranks 0 and 1 need none.
func (j *job) sealing() (auth string, datagram int) {
	l := j.n.Layers().Conduit.Limits()
	if l.Datagram == 0 || j.direct {
		return "", 0
	}
	return l.Authentication[strings.LastIndexByte(l.Authentication, ' ')+1:], l.Datagram // without the cipher
}

// serve carries out rank 0's commands until the last one. Meanwhile the
// rank waits as any idle rank does, and answers.
func (j *job) serve() error {
	pending := func() bool { return j.s.pending }
	for {
		if err := j.e.Wait(nil, pending); err != nil {
			return err
		}
		c := j.s.cmd
		j.s.pending = false
		var err error
		switch c.what {
		case cmdQuit:
			return nil
		case cmdLine:
			err = j.answerLine(c.count)
		case cmdCopy:
			err = j.answerCopies(c.count, c.size)
		case cmdBarrier:
			err = j.barriers(int(c.count))
		case cmdSockets:
			err = j.join(0, j.openSockets, j.connectSockets)
		case cmdPings:
			err = j.answerPings(c.count, c.size)
		case cmdMessages:
			err = j.catch(&j.sockets.single, j.own[pageSize:], c.count, alone(c.size).window)
		case cmdStream:
			err = j.catch(&j.sockets.joined, j.own[pageSize:], c.count, j.sockets.stream(c.size).window)
		case cmdExpose:
			err = j.expose()
		case cmdPins:
			err = j.answerPins()
		case cmdJoint:
			err = j.answerJoint(c.count, c.size)
		case cmdBare:
			err = j.join(0, j.openBare, j.connectBare)
		case cmdBarePings, cmdBareMessages, cmdBareWrites:
			err = j.bareAnswer(c.what, c.count, c.size)
		case cmdTasks:
			err = j.n.Wait(pending) // which runs tasks
		}
		if err != nil {
			return err
		}
	}
}

// command tells the other rank, or all others if it concerns them, what to do.
func (j *job) command(what uint32, count, size int) error {
	last := 1
	if what == cmdQuit || what == cmdBarrier || what == cmdJoint {
		last = j.n.Size() - 1
	}
	lo, hi := am.Pack64(uint64(count))
	for r := 1; r <= last; r++ {
		if err := j.e.RequestShort(r, hCommand, what, lo, hi, uint32(size)); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) barriers(count int) error {
	b := j.n.Layers().Barriers
	for range count {
		if err := b.Notify(0, 0); err != nil {
			return err
		}
		if err := b.Wait(0, 0); err != nil {
			return err
		}
	}
	return nil
}

package am

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/segment"
	"pgregory.net/rapid"
)

// tiny is the smallest job there is: rings of four messages and medium payloads
// of 512 bytes, so that everything is full all the time.
var tiny = conduits.Config{Credits: 1, MaxMedium: 1, MaxSegment: 1 << 20}

// reply is the way in which a request's handler replies.
type reply uint8

const (
	replyNot reply = iota
	replyShort
	replyMedium
	replyLong
	replyPrepared
	replyCancelled   // prepares, cancels, and replies otherwise
	replyCancelledNo // prepares, cancels, and does not reply
	replyTry
	numReplies
)

// traffic handlers: one for each thing to do, and one for what comes back.
const (
	hTraffic HandlerID = 128
	hBack    HandlerID = hTraffic + HandlerID(numReplies)
)

// How a request is sent.
const (
	sendShort = iota
	sendMedium
	sendLong
	sendTryShort
	sendTryMedium
	sendTryLong
	sendNB
	sendPrepared
	sendTryPrepared
	sendCancelled
	sendPoll
	numSends
)

// request is one step of a goroutine.
type request struct {
	how     int
	dst     int
	reply   reply
	args    []uint32
	payload []byte
	to      segment.NLA // long: where in dst's segment
}

func (q *request) kind() Kind {
	switch q.how {
	case sendShort, sendTryShort:
		return Short
	case sendLong, sendTryLong, sendNB:
		return Long
	}
	return Medium
}

// script has the requests of all goroutines of all ranks: script[rank][goroutine].
type script [][][]request

// dice draws a number in 0..n-1.
type dice func(n int) int

// newScript draws a script. Every long message has a place of its own in the
// segments, at any alignment; used is how far they reach.
func newScript(d dice, ranks, goroutines, steps, medium int) (s script, used []int) {
	used = make([]int, ranks)
	serial := uint32(0)
	room := func(rank, n int) segment.NLA {
		at := used[rank] + d(5)
		used[rank] = at + n
		return segment.AttachBase + segment.NLA(at)
	}
	s = make(script, ranks)
	for r := range s {
		s[r] = make([][]request, 1+d(goroutines))
		for g := range s[r] {
			for range d(steps + 1) {
				serial++
				q := request{how: d(numSends), dst: d(ranks), reply: reply(d(int(numReplies)))}
				nargs := d(MaxArgs + 1)
				if q.reply == replyLong {
					nargs = max(nargs, 2)
				}
				q.args = make([]uint32, nargs)
				for i := range q.args {
					q.args[i] = serial*1000003 + uint32(i)*77777
				}
				size := 0
				switch k := q.kind(); {
				case k == Long:
					size = [...]int{0, 1, 7, 8, 1 + d(100), d(6000)}[d(6)]
				case k == Medium:
					size = [...]int{0, 1, 8, medium, medium - 1, d(160), d(medium + 1)}[d(7)]
				}
				q.payload = make([]byte, size)
				for i := range q.payload {
					q.payload[i] = byte(serial + uint32(i)*13)
				}
				if q.kind() == Long {
					q.to = room(q.dst, size)
				}
				if q.reply == replyLong {
					q.args[0], q.args[1] = PackNLA(room(r, size))
				}
				s[r][g] = append(s[r][g], q)
			}
		}
	}
	return s, used
}

// message says everything about an arrival, so that equal messages are equal.
func message(src int, h HandlerID, k Kind, args []uint32, payload []byte, to segment.NLA) string {
	return fmt.Sprintf("from %d to handler %d: %v %d %d:%08x at %v", src, h, k, args, len(payload), crc32.ChecksumIEEE(payload), to)
}

// answer is the reply to a request.
func (r reply) answer(args []uint32, payload []byte, medium int) (k Kind, a []uint32, p []byte, to segment.NLA, ok bool) {
	a = make([]uint32, len(args))
	for i, x := range args {
		a[len(a)-1-i] = ^x
	}
	p = make([]byte, len(payload))
	for i, x := range payload {
		p[i] = ^x
	}
	switch r {
	case replyShort, replyCancelled, replyTry:
		return Short, a, nil, 0, true
	case replyMedium:
		return Medium, a, p[:min(len(p), medium)], 0, true
	case replyPrepared:
		return Medium, a, p[:min(len(p), medium)/2], 0, true
	case replyLong:
		return Long, a, p, UnpackNLA(args[0], args[1]), true
	}
	return 0, nil, nil, 0, false
}

// mark counts what a rank received. Handlers of a rank never run at once, so
// the maps need no lock: the race detector sees to it.
type mark struct {
	requests, replies map[string]int
	count             atomic.Int64
	wrong             error
}

func newMark() *mark {
	return &mark{requests: map[string]int{}, replies: map[string]int{}}
}

// expect has the messages that every rank should have received when a script is over.
func (s script) expect(medium int) []*mark {
	m := make([]*mark, len(s))
	for r := range m {
		m[r] = newMark()
	}
	for src := range s {
		for g := range s[src] {
			for i := range s[src][g] {
				q := &s[src][g][i]
				if q.how == sendPoll || q.how == sendCancelled {
					continue
				}
				m[q.dst].requests[message(src, hTraffic+HandlerID(q.reply), q.kind()|Request, q.args, q.payload, q.to)]++
				m[q.dst].count.Add(1)
				if k, a, p, to, ok := q.reply.answer(q.args, q.payload, medium); ok {
					m[src].replies[message(q.dst, hBack, k|Reply, a, p, to)]++
					m[src].count.Add(1)
				}
			}
		}
	}
	return m
}

// handlers are the traffic handlers of one rank, which write to m.
func (m *mark) handlers(medium int) []Entry {
	note := func(t *Token, err error) {
		if err != nil && m.wrong == nil {
			m.wrong = fmt.Errorf("handler %s: %w", t.describe(), err)
		}
	}
	var l []Entry
	for r := range numReplies {
		l = append(l, Entry{hTraffic + HandlerID(r), fmt.Sprintf("traffic %d", r), func(t *Token, args []uint32, payload []byte) {
			m.requests[message(t.Src(), t.Handler(), t.Kind(), args, payload, t.To())]++
			note(t, answer(t, r, args, payload, medium))
			m.count.Add(1)
		}, AnyArgs, Request})
	}
	return append(l, Entry{hBack, "back", func(t *Token, args []uint32, payload []byte) {
		m.replies[message(t.Src(), t.Handler(), t.Kind(), args, payload, t.To())]++
		m.count.Add(1)
	}, AnyArgs, Reply})
}

// answer replies as r says.
func answer(t *Token, r reply, args []uint32, payload []byte, medium int) error {
	_, a, p, to, _ := r.answer(args, payload, medium)
	switch r {
	case replyShort:
		return t.ReplyShort(hBack, a...)
	case replyMedium:
		return t.ReplyMedium(hBack, p, a...)
	case replyLong:
		return t.ReplyLong(hBack, to, p, a...)
	case replyPrepared:
		b, err := t.PrepareMedium(hBack, len(p), 2*len(p)+1, len(a))
		if err != nil {
			return err
		}
		if n := len(b.Payload()); n < len(p) || n > 2*len(p)+1 {
			return fmt.Errorf("prepared %d bytes for %d to %d", n, len(p), 2*len(p)+1)
		}
		copy(b.Payload(), p)
		return b.Commit(len(p), a...)
	case replyCancelled, replyCancelledNo:
		b, err := t.PrepareMedium(hBack, len(p)/2, medium, len(a))
		if err != nil {
			return err
		}
		clear(b.Payload())
		if err := b.Cancel(); err != nil || r == replyCancelledNo {
			return err
		}
		return t.ReplyShort(hBack, a...)
	case replyTry:
		if sent, err := t.TryReplyShort(hBack, a...); sent || err != nil {
			return err
		}
		return t.ReplyShort(hBack, a...)
	}
	return nil
}

// send performs one step.
func (q *request) send(e *Messenger) error {
	h := hTraffic + HandlerID(q.reply)
	retry := func(try func() (bool, error)) error {
		for {
			if sent, err := try(); sent || err != nil {
				return err
			}
			if e.Poll() == 0 {
				runtime.Gosched()
			}
		}
	}
	switch q.how {
	case sendShort:
		return e.RequestShort(q.dst, h, q.args...)
	case sendMedium:
		return e.RequestMedium(q.dst, h, q.payload, q.args...)
	case sendLong:
		return e.RequestLong(q.dst, h, q.to, q.payload, q.args...)
	case sendTryShort:
		return retry(func() (bool, error) { return e.TryRequestShort(q.dst, h, q.args...) })
	case sendTryMedium:
		return retry(func() (bool, error) { return e.TryRequestMedium(q.dst, h, q.payload, q.args...) })
	case sendTryLong:
		var ev Event
		if err := retry(func() (bool, error) { return e.TryRequestLong(q.dst, h, q.to, q.payload, &ev, q.args...) }); err != nil {
			return err
		}
		return e.WaitEvent(&ev)
	case sendNB:
		var ev Event
		if err := e.RequestLongNB(q.dst, h, q.to, q.payload, &ev, q.args...); err != nil {
			return err
		}
		return e.WaitEvent(&ev)
	case sendPrepared:
		p, err := e.PrepareMedium(q.dst, h, len(q.payload), 3*len(q.payload), len(q.args))
		if err != nil {
			return err
		}
		copy(p.Payload(), q.payload)
		return p.Commit(len(q.payload), q.args...)
	case sendTryPrepared, sendCancelled:
		var p Prepared
		err := retry(func() (ok bool, err error) {
			p, ok, err = e.TryPrepareMedium(q.dst, h, len(q.payload), len(q.payload), len(q.args))
			return ok, err
		})
		if q.how == sendCancelled && errors.Is(err, ErrClosed) {
			return nil // no rank waits for it, and a rank that waits for nothing leaves
		}
		if err != nil {
			return err
		}
		if q.how == sendCancelled {
			clear(p.Payload())
			return p.Cancel()
		}
		copy(p.Payload(), q.payload)
		return p.Commit(len(q.payload), q.args...)
	case sendPoll:
		e.Poll()
	}
	return nil
}

// play sends what a rank has to send and waits for all that it should receive.
func (s script) play(e *Messenger, m *mark, want *mark) error {
	errc := make(chan error)
	for _, steps := range s[e.Rank()] {
		go func() {
			for i := range steps {
				if err := steps[i].send(e); err != nil {
					errc <- err
					return
				}
			}
			errc <- e.Wait(nil, func() bool { return m.count.Load() >= want.count.Load() })
		}()
	}
	var errs []error
	for range s[e.Rank()] {
		errs = append(errs, <-errc)
	}
	return errors.Join(errs...)
}

// compare returns an error that lists what is missing or too much.
func compare(got, want map[string]int) error {
	if maps.Equal(got, want) {
		return nil
	}
	var b bytes.Buffer
	for k, n := range want {
		if got[k] != n {
			fmt.Fprintf(&b, "\n%d times, want %d: %s", got[k], n, k)
		}
	}
	for k, n := range got {
		if want[k] == 0 {
			fmt.Fprintf(&b, "\n%d times, never sent: %s", n, k)
		}
	}
	return errors.New(b.String())
}

// run plays a script on ranks of this process.
func (s script) run(c conduits.Config, size int, debug bool) error {
	eps, err := shm.Local(len(s), c)
	if err != nil {
		return err
	}
	medium := eps[0].Limits().MaxMedium
	want := s.expect(medium)
	got := make([]*mark, len(s))
	errs := make([]error, len(s))
	var wg sync.WaitGroup
	var sent, received [conduits.NumClasses]uint64
	for r, ep := range eps {
		got[r] = newMark()
		wg.Add(1)
		go func() {
			defer wg.Done()
			e, err := Attach(ep, Config{Handlers: got[r].handlers(medium), SegmentSize: uint64(size), Debug: debug})
			if err == nil {
				err = s.play(e, got[r], want[r])
			}
			if err != nil {
				errs[r] = fmt.Errorf("rank %d: %w", r, err)
				ep.Fail(err)
			}
		}()
	}
	wg.Wait()
	for r := range s {
		// What came twice may still be on its way.
		eps[r].Poll()
		errs = append(errs, got[r].wrong, compare(got[r].requests, want[r].requests), compare(got[r].replies, want[r].replies))
		var st conduits.Stats
		eps[r].Stats(&st)
		for c := range sent {
			sent[c] += st.Sent[c]
			received[c] += st.Received[c]
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if sent != received {
		return fmt.Errorf("%d messages were sent, %d received", sent, received)
	}
	return nil
}

// TestTraffic sends random messages of every kind in every way from several
// goroutines of several ranks through full mailboxes: each request runs exactly
// once with exactly its content, each reply likewise.
func TestTraffic(t *testing.T) {
	for name, c := range map[string]conduits.Config{
		"tiny":  tiny,
		"small": {Credits: 8, MaxMedium: 1024},
		"usual": {},
	} {
		t.Run(name, func(t *testing.T) {
			eps, err := shm.Local(1, c)
			if err != nil {
				t.Fatal(err)
			}
			medium := eps[0].Limits().MaxMedium
			rapid.Check(t, func(rt *rapid.T) {
				d := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "") }
				s, used := newScript(d, 1+d(4), 3, 40, medium)
				size := segment.PageSize
				for _, n := range used {
					size = max(size, (n+segment.PageSize-1)/segment.PageSize*segment.PageSize)
				}
				if err := s.run(c, size, d(2) == 0); err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
}

// seeded is a dice that gives the same on every rank.
func seeded(seed uint64) dice {
	r := rand.New(rand.NewPCG(seed, 0))
	return func(n int) int { return r.IntN(n) }
}

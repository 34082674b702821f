package contract

import (
	"errors"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// Messages of a rank to itself keep the rules of all messages, however a conduit
// carries them.
var selfChecks = []Check{
	{Name: "messages to oneself", Run: checkSelf},
	{Name: "credit of messages to oneself", Run: checkSelfCredit},
	{Name: "wake by oneself", Seeded: true, Run: checkSelfWake},
	{Name: "refused messages to oneself", Run: checkSelfRefused},
}

// checkSelf: no way to send runs anything, messages have the contents of the buffers at
// the call, and a request that a rank sends to itself is not run inside another one.
func checkSelf(c *Case) {
	const words, bytes, rounds = 5, 300, 40
	for _, n := range []int{1, 2} {
		c.Job(n, Small, func(p *Peer) {
			sending := false
			got := make(map[uint32]int)
			replies := 0
			s := &sink{complete: func(uint64, conduits.Event, uint64, error) {}}
			s.receive = func(m *conduits.Message) {
				if sending {
					p.Errorf("a message was run by the call that sent it, or another one")
				}
				if m.Src != p.Rank {
					p.Errorf("a message of rank %d", m.Src)
				}
				if m.Class == conduits.Reply {
					replies++
					return
				}
				if len(m.Words) != words {
					p.Errorf("%d words, want %d", len(m.Words), words)
					return
				}
				id := m.Words[0]
				got[id]++
				for i, w := range m.Words[1:] {
					if w != id+uint32(i) {
						p.Errorf("message %d has the words %v", id, m.Words)
					}
				}
				if id%4 != 0 && (len(m.Payload) != bytes || Wrong(m.Payload, uint64(id), 0) >= 0) {
					p.Errorf("message %d has %d other bytes", id, len(m.Payload))
				}
				s.await("credit for a reply", func() bool {
					sending = true
					st := p.EP.Send(p.Rank, conduits.Reply, 1, nil)
					sending = false
					return st != conduits.NoCredit
				})
			}
			p.attach(rounds*512, s)
			w := make([]uint32, words)
			b := make([]byte, bytes)
			for id := range uint32(rounds) {
				p.reserve(func() (st conduits.Status) {
					sending = true
					defer func() { sending = false }()
					w[0] = id
					for i := range w[1:] {
						w[1+i] = id + uint32(i)
					}
					Fill(b, uint64(id), 0)
					var slot conduits.Slot
					switch id % 4 {
					case 0:
						st = p.EP.Send(p.Rank, conduits.Request, 1, w)
					case 1:
						st = p.EP.SendPayload(p.Rank, conduits.Request, 1, w, b, 0)
					case 2:
						if slot, st = p.EP.Reserve(p.Rank, conduits.Request, words, bytes); st == conduits.Ready {
							copy(slot.Words, w)
							copy(slot.Payload, b)
							p.EP.Commit(p.Rank, conduits.Request, slot, 1, bytes)
						}
					case 3:
						mine := Fill(make([]byte, bytes), uint64(id), 0) // until its SourceDone
						if slot, _, st = p.EP.ReservePut(p.Rank, conduits.Request, words, At(int(id)*512), mine, 1); st == conduits.Ready {
							copy(slot.Words, w)
							p.EP.Commit(p.Rank, conduits.Request, slot, 1, bytes)
						}
					}
					clear(w)
					clear(b)
					return st
				})
			}
			p.Wait("replies", func() bool { return replies == rounds })
			for id := range uint32(rounds) {
				if got[id] != 1 {
					p.Fatalf("message %d has come %d times", id, got[id])
				}
			}
			p.Meet()
		})
	}
}

// checkSelfCredit: credit for messages to oneself runs out, and comes back as they
// are consumed, without any other rank's doing.
func checkSelfCredit(c *Case) {
	const rounds = 3
	c.Job(1, Small, func(p *Peer) {
		got, sent := 0, 0
		p.attach(0, &sink{receive: func(*conduits.Message) { got++ }})
		l := p.EP.Limits()
		for range rounds {
			from := sent
			for refused := 0; refused < stubborn; {
				switch p.EP.Send(p.Rank, conduits.Request, 1, nil) {
				case conduits.Ready:
					refused = 0
					if sent++; sent-from > 1000*(l.Credits+1) {
						p.Fatalf("%d messages are under way to a rank that consumes none", sent-from)
					}
				case conduits.NoCredit:
					refused++
				default:
					p.Must(p.EP.Err())
				}
			}
			if sent-from < (l.Credits+1)/2 {
				p.Fatalf("%d messages fit; limits %+v", sent-from, l)
			}
			p.Wait("messages", func() bool { return got == sent })
		}
	})
}

// checkSelfWake: a goroutine that is parked is woken by what another one of its
// rank sends to the rank.
func checkSelfWake(c *Case) {
	rounds := *flagRound
	c.Job(1, Small, func(p *Peer) {
		var got [2]atomic.Int64
		p.attach(0, &sink{receive: func(m *conduits.Message) { got[m.Words[0]].Add(1) }})
		p.Threads(2, func(k int) {
			q := p.thread(k)
			for i := range rounds {
				if i%2 == k {
					q.pause(true)
					q.deliver(q.Rank, uint32(k))
					q.yield(func() bool { return got[k].Load() > int64(i/2) }) // without a poll
				} else {
					q.sleep("a message of the other goroutine", func() bool { return got[1-k].Load() > int64(i/2) })
				}
			}
		})
	})
}

// checkSelfRefused: a message to oneself whose data goes to memory that is not
// registered any more is not delivered and counted, its credit comes back, and
// operations on such memory end with ErrFault.
func checkSelfRefused(c *Case) {
	c.Job(1, Small, func(p *Peer) {
		r := newRMA(p)
		var x *extra
		good := 0
		r.sink.beyond = func(a segment.NLA, n int) []byte { return x.bytes(a, n) }
		r.sink.receive = func(m *conduits.Message) {
			if len(m.Words) != 1 || m.Words[0] != 7 || Wrong(m.Payload, 5, 0) >= 0 {
				p.Errorf("a message that was to be refused: words %v, %d bytes at %v", m.Words, len(m.Payload), m.To)
			}
			good++
		}
		p.attach(segment.PageSize, &r.sink)
		mem := Fill(OnPage(2*segment.PageSize), 1, 0)
		x = p.register(mem[8:1000], segment.RightsAll, segment.AnyPeer)
		dead := p.register(mem[2000:5000], segment.RightsAll, segment.AnyPeer)
		p.deregister(dead)
		rounds := 3*p.EP.Limits().Credits + 5
		b := Fill(make([]byte, 64), 6, 0)
		g := Fill(make([]byte, 64), 5, 0)
		for range rounds {
			r.long(0, dead.at(100), []uint32{9}, b)
			r.long(0, x.at(8), []uint32{7}, g)
		}
		p.Wait("the messages that are good", func() bool { return good == rounds })
		p.Wait("the others to be counted", func() bool {
			var s conduits.Stats
			p.EP.Stats(&s)
			return s.Faults >= uint64(rounds)
		})
		for what, err := range map[string]error{
			"put": r.tryPut(0, dead.at(0), b), "get": r.tryGet(b, 0, dead.at(0)), "put of a word": r.tryWord(0, dead.at(0), 1, 8),
		} {
			if !errors.Is(err, segment.ErrFault) {
				p.Errorf("%s: %v", what, err)
			}
		}
		if _, err := r.tryAdd(0, dead.at(0), 1); !errors.Is(err, segment.ErrFault) {
			p.Errorf("atomic: %v", err)
		}
		if Wrong(mem[2000:], 1, 2000) >= 0 {
			p.Fatalf("the data of a message that was refused has been put")
		}
		r.over()
	})
}

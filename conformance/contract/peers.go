package contract

import (
	"github.com/argon-go/argon/conduits"
)

// Stats count by peer, and what is counted of peers adds up to what is counted.
var peerChecks = []Check{
	{Name: "counters of peers", Run: checkPeers},
}

// addsUp are the statistics of p's rank, whose peers have to add up to the totals. The rank is quiet.
func addsUp(p *Peer) conduits.Stats {
	p.C.Helper()
	s := conduits.Stats{Peers: []conduits.PeerStats{}}
	p.EP.Stats(&s)
	var sum conduits.PeerStats
	for i := range s.Peers {
		q := &s.Peers[i]
		if q.Rank < 0 || q.Rank >= p.Size || i > 0 && q.Rank <= s.Peers[i-1].Rank {
			p.Fatalf("statistics: peer %d of %d is rank %d", i, len(s.Peers), q.Rank)
		}
		sum.Add(q)
	}
	if sum.Sent != s.Sent || sum.Received != s.Received || sum.NoCredit != s.NoCredit || sum.Resent != s.Resent || sum.Puts != s.Puts || sum.Gets != s.Gets || sum.Atomics != s.Atomics {
		p.Fatalf("statistics: the peers add up to %+v, and the totals are %+v", sum, s)
	}
	return s
}

// checkPeers: what a rank has sent to each other one, and to itself, is what its counters of that rank
// have, and what that one has received of it; the same goes for accesses. What is cancelled is not counted.
func checkPeers(c *Case) {
	const n, size = 3, 64
	var did [n][n]conduits.PeerStats // by rank and peer: what the former has done
	c.Job(n, Small, func(p *Peer) {
		r := newRMA(p)
		mine, got := &did[p.Rank], 0
		sent := func(dst int, class conduits.Class, bytes int) {
			mine[dst].Sent[class]++
			mine[dst].SentBytes += uint64(bytes)
		}
		r.sink.receive = func(m *conduits.Message) {
			got++
			if m.Class == conduits.Reply {
				return
			}
			r.sink.await("credit for a reply", func() bool {
				st := p.EP.SendPayload(m.Src, conduits.Reply, 2, nil, make([]byte, m.Words[0]), 0)
				return st != conduits.NoCredit
			})
			sent(m.Src, conduits.Reply, int(m.Words[0]))
		}
		p.attach(n*size, &r.sink)
		at, b := At(p.Rank*size), make([]byte, size)
		credit := func(dst int, f func() conduits.Status) {
			p.reserve(func() conduits.Status {
				st := f()
				if st == conduits.NoCredit {
					mine[dst].NoCredit++
				}
				return st
			})
		}
		requests := 0
		for dst := range n {
			reply := []uint32{uint32(p.Rank + dst)}
			for i := range 10 + 5*p.Rank + dst {
				requests += 4
				credit(dst, func() conduits.Status { return p.EP.Send(dst, conduits.Request, 1, reply) })
				sent(dst, conduits.Request, 0)
				credit(dst, func() conduits.Status { return p.EP.SendPayload(dst, conduits.Request, 1, reply, b[:i], 0) })
				sent(dst, conduits.Request, i)
				var s conduits.Slot
				for _, commit := range []bool{false, true} {
					credit(dst, func() (st conduits.Status) {
						s, st = p.EP.Reserve(dst, conduits.Request, 1, 300)
						return st
					})
					if !commit {
						p.EP.Cancel(dst, conduits.Request, s)
						continue
					}
					copy(s.Words, reply)
					p.EP.Commit(dst, conduits.Request, s, 1, 200+i)
					sent(dst, conduits.Request, 200+i)
				}
				r.long(dst, at, reply, b[:size-i])
				sent(dst, conduits.Request, size-i)
			}
			q := &mine[dst]
			for i := range 3 + p.Rank + 2*dst {
				r.await(r.put(dst, at, 1, i+1, bothDone))
				r.await(r.putWord(dst, at, 1, 8, bothDone))
				r.await(r.get(b[:i+2], dst, at, bothDone))
				if i%2 == 0 {
					r.atomic(dst, at, conduits.AtomicAdd, conduits.Uint64, 1, 0)
					q.Atomics++
				}
				q.Puts, q.PutBytes = q.Puts+2, q.PutBytes+uint64(i+1+8)
				q.Gets, q.GetBytes = q.Gets+1, q.GetBytes+uint64(i+2)
			}
		}
		want := requests // replies
		for src := range n {
			want += 4 * (10 + 5*src + p.Rank)
		}
		p.Wait("all messages", func() bool { return got >= want })
		r.over()
		s := addsUp(p)
		if len(s.Peers) != n {
			p.Fatalf("statistics of %d peers; there are %d", len(s.Peers), n)
		}
		refused, counted := uint64(0), uint64(0)
		for i, have := range s.Peers {
			q := mine[i]
			q.Rank = i
			from := &did[i][p.Rank]
			q.Received, q.ReceivedBytes = from.Sent, from.SentBytes
			refused, counted = refused+q.NoCredit, counted+have.NoCredit
			q.NoCredit, q.Resent = have.NoCredit, have.Resent
			if have != q {
				p.Fatalf("statistics of rank %d: %+v; really %+v", i, have, q)
			}
		}
		if counted < refused {
			p.Fatalf("statistics: no credit %d times; really %d times", counted, refused)
		}
		again := conduits.Stats{Peers: s.Peers}
		if p.EP.Stats(&again); len(again.Peers) != n || &again.Peers[0] != &s.Peers[0] {
			p.Fatalf("statistics of %d peers do not go into the memory of others", len(again.Peers))
		}
		var none conduits.Stats
		if p.EP.Stats(&none); none.Peers != nil {
			p.Fatalf("statistics of %d peers, which were not asked for", len(none.Peers))
		}
		p.Meet()
	})
}

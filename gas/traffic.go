package gas

import (
	"errors"
	"fmt"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended/collective"
	"github.com/argon-go/argon/internal/job/profile"
)

// tellTraffic has rank 0 print how much ranks have sent to each other, and write it to a file if one is asked for,
// when all ranks have left, or the job has failed: it tells of rank 0 alone then. That it cannot is no failure of the program.
// Without a file a rank gives 16 sums at most, so that rank 0 does not need memory for all pairs.
func tellTraffic(n *Node, failed bool) {
	if failed && n.rank != 0 {
		return
	}
	own := flowsOf(n) // before anything that tells of it is sent
	top := profile.Largest(n.Size(), own)
	file := n.run.seen.Flows
	if file == "" {
		own = profile.Sums(n.Size(), own)
	}
	m := profile.Matrix{Ranks: n.Size(), Flows: [][]profile.Flow{own}, Pairs: [][]profile.Flow{top}}
	var err error
	if !failed {
		collective.Return(n.all.coll, true)
		flows, e := GatherV(n, 0, own)
		pairs, e2 := GatherV(n, 0, top) // in any case: others wait for it
		collective.Return(n.all.coll, false)
		if e == nil && e2 == nil {
			m.Flows, m.Pairs = flows, pairs
		} else {
			failed = true // collective calls of the program did not match
		}
		err = n.b.Barrier(leaveID, 0) // nor does a rank close while others look at its words
	}
	if n.rank != 0 {
		return
	}
	if failed {
		fmt.Fprintln(n.run.cfg.Output, "argon: the job, or a collective call of it, has failed: this is the traffic of rank 0 alone")
	}
	err = errors.Join(err, m.Table(n.run.cfg.Output, "argon: "))
	if file != "" {
		err = errors.Join(err, m.Write(file))
	}
	if err != nil {
		fmt.Fprintf(n.run.cfg.Output, "argon: traffic (ARGON_PROFILE=traffic): %v\n", err)
	}
}

// flowsOf is what n's rank has sent and accessed so far.
func flowsOf(n *Node) []profile.Flow {
	s := conduits.Stats{Peers: []conduits.PeerStats{}}
	n.ep.Stats(&s)
	list := make([]profile.Flow, 0, len(s.Peers))
	for i := range s.Peers {
		p := &s.Peers[i]
		f := profile.Flow{
			From: n.rank, To: p.Rank, Requests: p.Sent[conduits.Request], Replies: p.Sent[conduits.Reply], Bytes: p.SentBytes,
			Puts: p.Puts, PutBytes: p.PutBytes, Gets: p.Gets, GetBytes: p.GetBytes, Atomics: p.Atomics, NoCredit: p.NoCredit, Resent: p.Resent,
		}
		if f != (profile.Flow{From: f.From, To: f.To}) {
			list = append(list, f)
		}
	}
	return list
}

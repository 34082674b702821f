package where

import (
	"fmt"
	"slices"
	"sort"
)

// A Peer is what a rank has sent to another one, and accessed of it, since it began.
type Peer struct {
	Rank     int    `json:"to"`
	Count    uint64 `json:"count"` // messages and accesses by the transport
	Bytes    uint64 `json:"bytes"` // of both
	NoCredit uint64 `json:"noCredit,omitempty"`
	Resent   uint64 `json:"resent,omitempty"` // datagrams
}

// mostPeers is how many peers an answer has, and how many pairs a report that puts ranks together.
const mostPeers = 5

// Weight is by what peers are compared: a message without payload takes a slot, too.
func (p *Peer) Weight() uint64 { return p.Bytes + 64*p.Count }

// String is what p counts, of a rank that is named before it.
func (p *Peer) String() string {
	s := fmt.Sprintf("%d messages and accesses of %d bytes", p.Count, p.Bytes)
	if p.NoCredit > 0 {
		s += fmt.Sprintf(", no credit %d times", p.NoCredit)
	}
	if p.Resent > 0 {
		s += fmt.Sprintf(", %d datagrams again", p.Resent)
	}
	return s
}

// Met adds p to the peers of a, of which the largest are kept. p may have counted nothing.
func (a *Answer) Met(p Peer) {
	if p.Rank != a.Rank && p != (Peer{Rank: p.Rank}) {
		a.Peers = Insert(a.Peers, p, mostPeers, func(a, b *Peer) bool { return a.Weight() > b.Weight() })
	}
}

// A Pair is a rank and a peer of it.
type Pair struct {
	From int `json:"from"`
	Peer
}

// Pairs are the largest most of all that answers have.
func Pairs(all []Answer, most int) (top []Pair) {
	for i := range all {
		for _, p := range all[i].Peers {
			top = Insert(top, Pair{all[i].Rank, p}, most, func(a, b *Pair) bool { return a.Weight() > b.Weight() })
		}
	}
	return top
}

// Insert puts x into top, which is in the order of before, and behind what is equal. At most most of it remain.
func Insert[T any](top []T, x T, most int, before func(a, b *T) bool) []T {
	at := sort.Search(len(top), func(i int) bool { return before(&x, &top[i]) })
	if at >= most {
		return top
	}
	return slices.Insert(top[:min(len(top), most-1)], at, x)
}

package hybrid

import (
	"os"
	"strconv"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Pair is the two conduits that a conduit of several hosts is made of.
type Pair struct {
	Name string // of the whole
	Near conduits.Near
	Far  conduits.Far
}

// Conduit is the whole, to be registered.
func (p Pair) Conduit() conduits.Conduit {
	return conduits.Conduit{
		Name: p.Name, Local: p.Local, Join: p.Join,
		Launch: &conduits.Launch{Rendezvous: true, Memory: p.Near.Memory},
	}
}

// EnvHost is how many ranks each of the hosts has that Local pretends. By default
// it pretends two hosts.
const EnvHost = "ARGON_HYBRID_HOST"

// Local opens all ranks of a job in this process, which pretends to be several
// hosts: consecutive ranks share memory, and others talk by the conduit between hosts.
func (p Pair) Local(n int, c conduits.Config) ([]conduits.Endpoint, error) {
	host := (n + 1) / 2
	if s := os.Getenv(EnvHost); s != "" {
		var err error
		if host, err = strconv.Atoi(s); err != nil || host < 1 {
			return nil, errs.BadArg("hybrid: %s=%q is no number of ranks from 1 up", EnvHost, s)
		}
	}
	on := make([]int, max(n, 0))
	for r := range on {
		on[r] = r / host
	}
	return p.LocalOn(on, c)
}

// LocalOn is Local for as many ranks as host has entries: those for which it has the
// same number are on one host.
func (p Pair) LocalOn(host []int, c conduits.Config) ([]conduits.Endpoint, error) {
	n := len(host)
	if n == 0 {
		return nil, errs.BadArg("hybrid: a job without ranks")
	}
	hoods := conduits.NewNeighbourhoods(n, func(rank int) int { return host[rank] })
	near := make([]conduits.NearEndpoint, n)
	for i := range hoods.Len() {
		ranks := hoods.Ranks(i)
		l, err := p.Near.Local(len(ranks), conduits.Part{Ranks: ranks, Size: n, Conduit: p.Name, Outside: hoods.Len() > 1}, c)
		if err != nil {
			return nil, err
		}
		for k, r := range ranks {
			near[r] = l[k]
		}
	}
	eps := make([]conduits.Endpoint, n)
	if hoods.Len() == 1 {
		for i, e := range near {
			eps[i] = e
		}
		return eps, nil
	}
	if c.MaxSegment == 0 {
		c.MaxSegment = uint64(segment.MaxAttach) // the memory is near's
	}
	far, err := p.Far.Local(n, c)
	if err != nil {
		return nil, err
	}
	limits := far[0].Limits()
	for _, first := range hoods.Firsts() {
		limits = least(limits, near[first].Limits())
		far[first].AtEnd(near[first].Release)
	}
	for r := range eps {
		e, err := New(Config{Near: near[r], Far: far[r], Neighbourhoods: hoods, Limits: limits})
		if err != nil {
			return nil, err
		}
		eps[r] = e
	}
	return eps, nil
}

// least returns the smaller of each limit of a and b.
func least(a, b conduits.Limits) conduits.Limits {
	return conduits.Limits{
		MaxMedium:  min(a.MaxMedium, b.MaxMedium),
		MaxLong:    min(a.MaxLong, b.MaxLong),
		MaxSegment: min(a.MaxSegment, b.MaxSegment),
		Credits:    min(a.Credits, b.Credits),
	}
}

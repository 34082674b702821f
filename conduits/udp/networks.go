package udp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/nets"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/sys"
)

// Hosts may have several networks (ARGON_NETWORKS, package nets). A rank has one socket
// for all of them, at any of its host's addresses: by which network a datagram goes is a
// matter of the address that it is sent to, which the kernel has a route for. Of
// the paths of a pair of hosts, up to nets.MaxPaths by size of data, each is a peer of its
// own to the engines of their ranks, with a path, credits and windows of its own, and has
// a sealer of its own: peer n is rank n % size by path n / size. So nothing that one network
// does to datagrams, its order and its round trips, is taken for the other one's.
// Messages and operations take effect in no order in any case, as the engine has it.
//
// Datagrams between hosts without a common network are addressed to the first rank of a
// host in between, which finds by the header that they are for another rank, and hands
// them on as they are: it has no key of theirs.

// mostNetHosts bounds what the rendezvous keeps of a network, and what a rank asks it.
const mostNetHosts = 512

// mostRelayed is how many ranks a job has at most in which hosts hand on: each rank leaves a
// key at the rendezvous.
const mostRelayed = 1 << 15

// networks is what a rank knows of its job's. It is the book of its socket.
type networks struct {
	table
	graph   *nets.Graph
	size    int
	here    int // this host
	local   netip.Addr
	firsts  []int          // first rank of each host
	at      [][]netip.Addr // by network and host
	m       *nets.Map
	relayed bool                           // m.Relayed()
	ways    []atomic.Pointer[[]nets.Path]  // from this host, by host
	pairs   *conc.Map[[2]int, []nets.Path] // of others, that this one hands on for
}

// Keys of the rendezvous' store: the addresses of a host, put by its first rank, and those
// of all hosts on a network, put by rank 0.
func networksOf(host int) string { return "udp/networks/host/" + strconv.Itoa(host) }
func networksOn(net int) string  { return "udp/networks/" + strconv.Itoa(net) }

// numbers is how many numbers of peers there are.
func (w *networks) numbers() int { return nets.MaxPaths * w.size }

// connect finds out where the ranks of the job are on the networks of g.
func (m *member) connect(g *nets.Graph, o options, is4 bool) (*networks, error) {
	w := &networks{
		table: table{m.client}, graph: g, size: m.size, here: m.client.Host(m.rank),
		local: netip.IPv6Loopback(), at: make([][]netip.Addr, len(g.Networks)), pairs: conc.NewMap[[2]int, []nets.Path](),
	}
	if is4 {
		w.local = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	for r := range m.size {
		if m.client.Host(r) == len(w.firsts) {
			w.firsts = append(w.firsts, r)
		}
	}
	hosts := len(w.firsts)
	if hosts > mostNetHosts {
		return nil, errs.BadArg("udp: %d hosts with networks of their own (%s); at most %d", hosts, EnvNetworks, mostNetHosts)
	}
	w.ways = make([]atomic.Pointer[[]nets.Path], hosts)
	ctx := context.Background()
	if w.firsts[w.here] == m.rank {
		own, err := ownAddresses(g, o.host)
		if err == nil {
			err = m.client.Put(networksOf(w.here), []byte(describeHost(o.host)+"\n"+own))
		}
		if err != nil {
			return nil, err
		}
	}
	var hostNames []string
	if m.rank == 0 {
		by := make([][]string, hosts)
		hostNames = make([]string, hosts)
		if err := each(hosts, func(h int) error {
			b, err := m.client.Get(ctx, networksOf(h))
			name, rest, _ := strings.Cut(string(b), "\n")
			hostNames[h], by[h] = errs.Printable(name, 100), strings.Fields(rest)
			return err
		}); err != nil {
			return nil, err
		}
		for k := range w.at {
			var l []string
			for h := range by {
				if len(by[h]) != len(w.at) {
					return nil, errs.BadArg("udp: rank %d has %d networks, rank 0 %d (%s)", w.firsts[h], len(by[h]), len(w.at), EnvNetworks)
				}
				l = append(l, by[h][k])
			}
			if err := m.client.Put(networksOn(k), []byte(strings.Join(l, " "))); err != nil {
				return nil, err
			}
		}
	}
	for k := range w.at {
		b, err := m.client.Get(ctx, networksOn(k))
		if err != nil {
			return nil, err
		}
		for _, s := range strings.Fields(string(b)) {
			a, err := netip.ParseAddr(s)
			if err != nil && s != "-" {
				return nil, errs.Resource("udp: the rendezvous says that a host is at %q, which no rank of this version would say", s)
			}
			w.at[k] = append(w.at[k], a)
		}
		if len(w.at[k]) != hosts {
			return nil, errs.Resource("udp: the rendezvous says that %d of %d hosts may be on network %s", len(w.at[k]), hosts, g.Networks[k].Name)
		}
	}
	w.m = nets.NewMap(g, hosts, func(h, k int) bool { return w.at[k][h].IsValid() })
	if w.relayed = w.m.Relayed(); w.relayed {
		if m.size > mostRelayed {
			return nil, errs.BadArg("udp: %d ranks, some of which reach others through a third host; at most %d (%s)", m.size, mostRelayed, EnvNetworks)
		}
		m.watchRelays(w)
	}
	for h := range hosts {
		if h != w.here && len(w.to(h)) == 0 {
			return nil, errs.BadArg("udp: no way from rank %d's host (%s) to rank %d's: no network has both, and no hosts between them are on networks that lead there (%s: %v)",
				m.rank, describeHost(o.host), w.firsts[h], EnvNetworks, g)
		}
	}
	if m.rank == 0 {
		w.say(hostNames)
	}
	return w, nil
}

// mostSaid is how many hosts' ways are told.
const mostSaid = 16

// say has the launcher print, with -v, which ways the hosts take to each other.
func (w *networks) say(names []string) {
	name := func(h int) string { return names[h] }
	var l []string
	for h := range min(len(names), mostSaid) {
		for o := range h {
			l = append(l, fmt.Sprintf("%s and %s: %s", names[o], names[h], w.m.Choices(w.m.Paths(o, h), name)))
		}
	}
	if len(names) > mostSaid {
		l = append(l, fmt.Sprintf("and those of %d more hosts", len(names)-mostSaid))
	}
	_ = w.c.Put(rendezvous.Said, []byte("networks between "+strings.Join(l, ", between "))) // it is for information alone
}

// ownAddresses are this host's addresses on the networks of g, "-" for one that it is not on.
func ownAddresses(g *nets.Graph, host string) (string, error) {
	list, err := net.Interfaces()
	if err != nil {
		return "", errs.Resource("udp: interfaces of this host: %v", err)
	}
	var all []netip.Addr
	for _, i := range list {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagRunning == 0 {
			continue // it keeps its addresses
		}
		addrs, _ := i.Addrs()
		for _, n := range addrs {
			if p, err := netip.ParsePrefix(n.String()); err == nil {
				all = append(all, p.Addr().Unmap())
			}
		}
	}
	l, any := make([]string, len(g.Networks)), false
	for k := range g.Networks {
		l[k] = "-"
		for _, a := range all {
			if l[k] == "-" && g.Networks[k].Has(a, host, describeHost(host)) {
				l[k], any = a.String(), true
			}
		}
	}
	if !any {
		return "", errs.BadArg("udp: host %s is on none of the networks of %s (%v); it has the addresses %v", describeHost(host), EnvNetworks, g, all)
	}
	return strings.Join(l, " "), nil
}

// to are the paths from this host to another.
func (w *networks) to(host int) []nets.Path {
	if l := w.ways[host].Load(); l != nil {
		return *l
	}
	l := w.m.Paths(w.here, host)
	w.ways[host].Store(&l)
	return l
}

// paths is how many paths there are to the host of rank.
func (w *networks) paths(rank int) int {
	host := w.c.Host(rank)
	if host == w.here {
		return 1
	}
	return len(w.to(host))
}

// number is the peer that n bytes go to rank dst by. It must be called with the lengths of
// data alone, not of what is around it, so that all of an operation goes one way.
func (w *networks) number(dst, n int) int {
	host := w.c.Host(dst)
	if host == w.here {
		return dst
	}
	l := w.to(host)
	i := len(l) - 1
	for i > 0 && l[i].From > uint64(n) {
		i--
	}
	return i*w.size + dst
}

// addr is where datagrams to a peer are sent.
func (w *networks) addr(number int) netip.AddrPort {
	rank := number % w.size
	host := w.c.Host(rank)
	if host == w.here {
		return netip.AddrPortFrom(w.local, w.c.Addr(rank).Port())
	}
	return w.hop(w.to(host), w.here, rank, number/w.size)
}

// hop is where host sends what is for rank by the path of that number of l; the zero AddrPort if
// there is none of that number, or host is not on it.
func (w *networks) hop(l []nets.Path, host, rank, path int) netip.AddrPort {
	if path >= len(l) {
		return netip.AddrPort{}
	}
	next, network, ok := l[path].Next(host)
	if !ok {
		return netip.AddrPort{}
	}
	if next != w.c.Host(rank) {
		rank = w.firsts[next]
	}
	return netip.AddrPortFrom(w.at[network][next], w.c.Addr(rank).Port())
}

// through is where this host hands on what goes from one peer to another; the zero AddrPort
// if it is on no such path.
func (w *networks) through(from, to int) netip.AddrPort {
	path := to / w.size
	if path != from/w.size || path >= nets.MaxPaths {
		return netip.AddrPort{}
	}
	return w.hop(w.between(w.c.Host(from%w.size), w.c.Host(to%w.size)), w.here, to%w.size, path)
}

// between are the paths of two hosts, of which this one is none.
func (w *networks) between(a, b int) []nets.Path {
	if a == b || a == w.here || b == w.here {
		return nil
	}
	key := [2]int{a, b}
	l, ok := w.pairs.Load(key)
	if !ok {
		l = w.m.Paths(a, b)
		w.pairs.Store(key, l) // up to mostNetHosts squared, if a rank says so
	}
	return l
}

// name tells which way a peer of another host is reached.
func (w *networks) name(number int) string {
	host := w.c.Host(number % w.size)
	if host == w.here {
		return "this host"
	}
	if l := w.to(host); number/w.size < len(l) {
		return w.m.Name(&l[number/w.size], w.hostName)
	}
	return "no network"
}

// hostName names a host that hands on, by its first rank.
func (w *networks) hostName(host int) string { return fmt.Sprintf("rank %d's host", w.firsts[host]) }

// relay is the link of a rank whose host is between others: it hands on what comes for their
// ranks. What it hands on it has not verified, but for the incarnation of its source; it goes
// to ranks of the job alone, one datagram for each that comes.
type relay struct {
	*socket
	w    *networks
	rank int
	box  sys.Outbox
	list []handed // of one Recv
}

// handed is a datagram to be handed on.
type handed struct {
	at netip.AddrPort
	b  []byte
}

// Recv receives, hands on, and leaves in the inbox what is for this rank.
func (r *relay) Recv(in *inbox) bool {
	if !r.socket.Recv(in) {
		return false
	}
	own, l := in.list[:0], r.list[:0]
	for _, g := range in.list {
		from, run, to, ok := seal.Ends(g.b)
		if !ok || to%r.w.size == r.rank || max(from, to) >= r.w.numbers() {
			own = append(own, g)
			continue
		}
		in.others, in.otherBytes = in.others+1, in.otherBytes+len(g.b)
		if run != r.w.c.Incarnation(from%r.w.size) {
			continue
		}
		if at := r.w.through(from, to); at.IsValid() { // else one that went astray
			l = append(l, handed{at, g.b})
			if r.marks != nil {
				r.marks[to%r.w.size].Add(1)
			}
		}
	}
	in.list, r.list = own, l
	if len(l) > 0 {
		r.hand(l)
	}
	return true
}

// hand sends what is in l, or loses it.
func (r *relay) hand(l []handed) {
	r.out.Lock()
	defer r.out.Unlock()
	for len(l) > 0 && !r.closed {
		n := 0
		for n < len(l) && r.box.Room(1) {
			var to sys.Sockaddr
			to.Set(l[n].at, r.six)
			r.box.Message(&to)
			r.box.Part(l[n].b)
			n++
		}
		sent, err := r.box.Flush(r.fd)
		if err != 0 {
			sent++ // the next network may carry no datagrams of that length
		}
		l = l[sent:]
	}
}

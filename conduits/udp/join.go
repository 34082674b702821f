package udp

import (
	"context"
	"crypto/ecdh"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/job/nets"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/awake"
	"github.com/argon-go/argon/internal/sys/ifaddr"
	"github.com/argon-go/argon/segment"
)

// The environment variables that a rank reads beside those of the rendezvous.
const (
	// EnvIface names the interface that datagrams go through, or its address.
	EnvIface = jobenv.Iface
	// EnvNetworks describes the networks that hosts have, see package nets.
	EnvNetworks = jobenv.Networks
	// EnvAuth names the protection of datagrams: authenticated, encrypted or none.
	EnvAuth = "ARGON_AUTH"
	// EnvDatagram is the largest datagram, bytes.
	EnvDatagram = "ARGON_DATAGRAM"
	// EnvDeadTime is how long a peer that something is awaited from may be silent,
	// such as 30s.
	EnvDeadTime = jobenv.DeadTime
	// EnvHost overrides the name of the host: ranks with equal names are taken to
	// share one.
	EnvHost = jobenv.Host
)

// MaxRanks is the largest size of a job of processes.
const MaxRanks = jobenv.MaxRanks

// DefaultDeadTime is how long a peer may be silent that something is awaited from.
// Engines answer while their rank computes, so that silence means that the rank's
// host, its network or its process stands still. It also bounds how long Close
// waits for such a peer.
const DefaultDeadTime = 10 * time.Second

// leastDeadTime leaves time for some datagrams to be lost in a row, and for a
// machine that has other things to do.
const leastDeadTime = 500 * time.Millisecond

// The engine's bounds of a datagram without what sealing adds, and of UDP over
// IPv4, bytes.
const (
	leastDatagram = 256
	mostDatagram  = 65507
)

// options are the values of the environment.
type options struct {
	iface    string
	networks *nets.Graph // nil: hosts have one address each
	mode     seal.Mode
	datagram int // 0: as the hosts are
	dead     time.Duration
	host     string
}

func readOptions(env func(string) string) (o options, err error) {
	o.iface, o.host, o.dead = env(EnvIface), env(EnvHost), DefaultDeadTime
	if o.host == "" {
		o.host = rendezvous.ThisHost()
	}
	if s := env(EnvNetworks); s != "" {
		if o.iface != "" {
			return o, errs.BadArg("udp: both %s=%q and %s are set: the networks say which interfaces datagrams go through", EnvIface, o.iface, EnvNetworks)
		}
		if o.networks, err = nets.Parse(EnvNetworks, s); err != nil {
			return o, err
		}
	}
	if s := env(EnvAuth); s != "" {
		if o.mode, err = seal.ParseMode(s); err != nil {
			return o, fmt.Errorf("udp: %s: %w", EnvAuth, err)
		}
	}
	if s := env(EnvDatagram); s != "" {
		least := leastDatagram + seal.Overhead(o.mode)
		if o.datagram, err = strconv.Atoi(s); err != nil || o.datagram < least || o.datagram > mostDatagram {
			return o, errs.BadArg("udp: %s=%q is no number of bytes from %d to %d", EnvDatagram, s, least, mostDatagram)
		}
	}
	if s := env(EnvDeadTime); s != "" {
		if o.dead, err = time.ParseDuration(s); err != nil || o.dead < leastDeadTime {
			return o, errs.BadArg("udp: %s=%q is no time of %v or more, such as 30s", EnvDeadTime, s, leastDeadTime)
		}
	}
	return o, nil
}

// Join opens this process's rank of a job. It returns when all ranks are there.
func Join(j conduits.Job, c conduits.Config) (conduits.Endpoint, error) {
	return conc.UpcastOne[conduits.Endpoint](Open(j, c))
}

// Open is Join for a conduit that uses this one.
func Open(j conduits.Job, c conduits.Config) (*Endpoint, error) {
	if c.MaxSegment == 0 {
		c.MaxSegment = uint64(segment.MaxAttach) // nothing is set aside before Attach
	}
	lim, err := limits(j.Size, MaxRanks, c)
	if err != nil {
		return nil, err
	}
	if j.Rank < 0 || j.Rank >= j.Size {
		return nil, errs.BadArg("udp: rank %d of %d does not exist (%s)", j.Rank, j.Size, jobenv.Rank)
	}
	o, err := readOptions(j.Env)
	if err != nil {
		return nil, errs.Misstarted(err)
	}
	setup, err := rendezvous.FromEnv(j.Env)
	if err != nil {
		return nil, errs.Misstarted(err)
	}
	conn, addr, err := listen(o, setup)
	if err != nil {
		return nil, errs.Misstarted(err)
	}
	e, err := open(j, lim, o, setup, conn, addr)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return e, nil
}

// open joins with the socket conn; addr is where other ranks reach it, the zero
// Addr if the rendezvous knows better.
func open(j conduits.Job, lim conduits.Limits, o options, setup rendezvous.Setup, conn *net.UDPConn, addr netip.Addr) (*Endpoint, error) {
	datagram := "by host"
	if o.datagram != 0 {
		datagram = strconv.Itoa(o.datagram)
	}
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	private, err := seal.NewPrivate(o.mode)
	if err != nil {
		return nil, err
	}
	hello := rendezvous.Hello{
		Rank: j.Rank, Size: j.Size, Host: o.host, Port: local.Port(), Addr: addr,
		Incarnation: seal.NewIncarnation(),
		Agree: fmt.Sprintf("udp 3, %v (%s), datagrams %s (%s), medium %d, credits %d, segment %d, networks %s (%s)",
			o.mode, EnvAuth, datagram, EnvDatagram, lim.MaxMedium, lim.Credits, lim.MaxSegment, digest(o.networks), EnvNetworks),
	}
	m := newMember(j.Rank, j.Size)
	m.heard, m.host, m.dead = j.Failed, describeHost(o.host), o.dead
	if private != nil {
		hello.Public = private.PublicKey().Bytes()
	}
	if m.client, err = setup.Join(context.Background(), hello, m.events()); err != nil {
		return nil, err
	}
	e, err := m.start(lim, o, setup.Key, hello.Incarnation, private, conn)
	if err != nil {
		m.client.Fail(j.Rank, errs.CarriedStatus(err), err.Error())
		_ = m.client.Close()
		return nil, err
	}
	return e, nil
}

// table is the book of a job of processes: the rendezvous' table.
type table struct{ c *rendezvous.Client }

func (t table) addr(rank int) netip.AddrPort { return t.c.Addr(rank) }

// source leaves it to the datagram, whose seal says it: a peer behind a
// translation of addresses is heard, too. Where this rank sends to does not
// change by that.
func (table) source(netip.AddrPort) (int, bool) { return -1, true }

// nearRTT is the assumed round trip between ranks of one host before one has been
// measured: long enough for a rank that has to be given a processor first.
const nearRTT = 5 * time.Millisecond

// start makes the endpoint.
func (m *member) start(lim conduits.Limits, o options, key jobkey.Key, incarnation uint64, private *ecdh.PrivateKey, conn *net.UDPConn) (*Endpoint, error) {
	is4 := isFour(conn)
	one, mates, err := m.hosts(is4, o.networks != nil)
	if err != nil {
		return nil, err
	}
	var w *networks
	if o.networks != nil && !one {
		if w, err = m.connect(o.networks, o, is4); err != nil {
			return nil, err
		}
		m.nets.Store(w)
	}
	numbers := m.size
	if w != nil {
		numbers = w.numbers()
	}
	if !one {
		if err := whole(conn); err != nil {
			return nil, err
		}
		if err := m.paths(conn, key, o); err != nil {
			return nil, err
		}
	}
	instance := m.client.Instance()
	var sealers []*seal.Sealer
	for n := m.rank; n < numbers; n += m.size {
		s, err := seal.New(seal.Config{
			Key: key.ForJob(instance[:]), Rank: n, Size: numbers, Mode: o.mode, Incarnation: incarnation, Private: private,
			Peer: func(n int) (uint64, []byte) { return m.client.Incarnation(n % m.size), m.client.Public(n % m.size) },
		})
		if err != nil {
			return nil, err
		}
		sealers = append(sealers, s)
	}
	var b book = table{m.client}
	if w != nil {
		b = w
	}
	l, err := newSocket(conn, m.rank, b, time.Now(), true)
	if err != nil {
		return nil, err
	}
	l.out.refused.dead, l.out.refused.own = o.dead, conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	l.whole = !one
	most := 0
	if o.datagram == 0 && one {
		// Each rank sees what its own socket keeps; others may send longer ones.
		o.datagram, most = hostDatagram(l), roomyDatagram
	}
	near := func(rank int) bool { return m.client.Host(rank) == m.client.Host(m.rank) }
	var way link = l
	if w != nil && w.relayed && w.m.Relays(w.here) && w.firsts[w.here] == m.rank {
		way = &relay{socket: l, w: w, rank: m.rank}
	}
	a := &sealing{
		s: sealers[0], more: sealers[1:], size: m.size, most: most,
		exhausted: func(err error) { m.fail(m.rank, err) },
	}
	if w != nil {
		a.paths = w.paths
	}
	e, err := newEndpoint(m, way, lim, a, engine.Config{
		Rank: m.rank, Size: numbers, Ranks: m.size, Epoch: epoch(incarnation), Datagram: o.datagram, DeadTime: o.dead, Name: m.name, Doubt: m.doubt, Seen: m.sight,
		RTT: func(number int) time.Duration {
			rank := number % m.size
			if near(rank) {
				return nearRTT
			}
			return m.trip(m.client.Host(rank), number/m.size)
		},
		// Between hosts nothing is known of the path; on one they are cut as need be.
		Sure: func(rank int) int {
			if one {
				return mostDatagram
			}
			return 0 // to ranks of this host as well: none is cut on its way, see whole
		},
		Local: func() string { return mtuOf(m.client.Addr(m.rank).Addr()) },
		Floor: floor(is4),
	})
	if err != nil {
		l.Close()
		return nil, err
	}
	e.client, e.processes, e.nets = m.client, true, w
	if conc.HaveProcessors(mates) {
		e.patience.Set(conc.LooksOf(mostPolls, mates), true)
	}
	m.ep.Store(e)
	e.att = attend(&e.driver)
	return e, nil
}

// floor is how long datagrams are that IPv4 or IPv6 has every host take and every link carry:
// packets of 576 bytes (RFC 791, 3.2) and 1280 (RFC 8200, 5), less the headers.
func floor(is4 bool) int {
	if is4 {
		return 576 - 20 - 8
	}
	return 1280 - 40 - 8
}

// name names a rank by its number, its address and, where that is known, its host:
// another one's is if it was asked for by meet.
func (m *member) name(number int) string {
	rank, by := number%m.size, ""
	if w := m.nets.Load(); w != nil {
		by = fmt.Sprintf("%v by %s", w.addr(number), w.name(number))
	} else {
		by = m.client.Addr(rank).String()
	}
	host := m.host
	if h := m.client.Host(rank); h != m.client.Host(m.rank) {
		host, _ = m.names.Load(h)
	}
	if host == "" {
		return fmt.Sprintf("rank %d (%s)", rank, by)
	}
	return fmt.Sprintf("rank %d (host %q, %s)", rank, host, by)
}

// meet finds out what the host of rank is called, which its first rank has said
// before the job began. It does not wait.
func (m *member) meet(rank int) {
	h := m.client.Host(rank)
	if h == m.client.Host(m.rank) || h >= mostHosts {
		return
	}
	if _, asked := m.names.LoadOrStore(h, ""); asked {
		return
	}
	go func() {
		// Without an answer the job has failed, or this rank has left.
		if b, err := m.client.Get(context.Background(), pathsName("report", h)); err == nil {
			name, _, _ := parseReport(b)
			m.names.Store(h, errs.Printable(name, 100))
		}
	}()
}

// doubt is called when a peer has been silent for half of the dead time. It does not wait.
func (m *member) doubt(number int) {
	m.meet(number % m.size)
	if _, asked := m.inquiries.LoadOrStore(number, true); !asked {
		go m.inquire(number)
	}
}

// inquiries is how many looks at a silent rank there can be in a dead time.
const inquiries = 8

// inquire has the rendezvous look at a peer's rank as long as it is in doubt, and vouches for it
// if its process runs: then it is its runtime that lets no goroutine answer.
func (m *member) inquire(number int) {
	defer m.inquiries.Delete(number)
	rank := number % m.size
	limit := m.dead / inquiries
	for {
		e, next := m.ep.Load(), time.NewTimer(limit)
		silent, doubted := e.doubted(number)
		if !doubted {
			return
		}
		if silent < m.dead {
			silent = 0
		}
		s, err := m.client.Look(context.Background(), rank, limit, silent)
		if err != nil {
			return // the job has failed, or this rank leaves
		}
		m.sights.Store(rank, s)
		if s.Busy() {
			e.vouch(number)
			return
		}
		select {
		case <-next.C:
		case <-m.over:
			return
		}
	}
}

// sight describes the result of the last look at rank.
func (m *member) sight(number int) string {
	if s, ok := m.sights.Load(number % m.size); ok {
		return s.String()
	}
	return ""
}

// hosts reports whether all ranks are on one host and how many are on this one. All
// addresses must be of the family that this rank's socket has, and reachable
// from elsewhere if any rank is elsewhere, unless the job's networks have other addresses.
func (m *member) hosts(is4, elsewhere bool) (one bool, near int, err error) {
	one = true
	here := m.client.Host(m.rank)
	for r := range m.size {
		if m.client.Host(r) == here {
			near++
		} else {
			one = false
		}
	}
	if elsewhere && !one {
		return one, near, nil
	}
	loopback := m.client.Addr(m.rank).Addr().IsLoopback() // hosts that are one machine
	for r := range m.size {
		a := m.client.Addr(r).Addr()
		switch {
		case a.Is4() != is4 && elsewhere:
			return one, near, errs.BadArg("udp: rank %d is at %v; the networks of the job (%s) are of the other family of IPv4 and IPv6", r, a, EnvNetworks)
		case a.Is4() != is4:
			return one, near, errs.BadArg("udp: rank %d is at %v, rank %d at %v: IPv4 and IPv6 in one job; choose with %s",
				m.rank, m.client.Addr(m.rank).Addr(), r, a, EnvIface)
		case !one && a.IsLoopback() != loopback:
			if loopback {
				r, a = m.rank, m.client.Addr(m.rank).Addr()
			}
			return one, near, errs.BadArg("udp: rank %d is at %v, which ranks on other hosts cannot reach; choose with %s", r, a, EnvIface)
		}
	}
	return one, near, nil
}

// listen opens the rank's socket. The address is the zero Addr if the rendezvous
// must say by which others reach this host: its own name here leads back to the
// loopback interface.
func listen(o options, setup rendezvous.Setup) (*net.UDPConn, netip.Addr, error) {
	addr, err := route(setup.Server, setup.Patience)
	if err != nil {
		return nil, netip.Addr{}, err
	}
	bind, told := addr, addr
	if o.iface != "" {
		if bind, err = ifaddr.Choose(o.iface, addr.Is4()); err != nil {
			return nil, netip.Addr{}, err
		}
		told = bind
	} else if addr.IsLoopback() && !alwaysLoopback(setup.Server) {
		told = netip.Addr{}
		bind = netip.IPv6Unspecified()
		if addr.Is4() {
			bind = netip.IPv4Unspecified()
		}
	}
	if o.networks != nil { // any address of this host
		bind = netip.IPv6Unspecified()
		if o.networks.Networks[0].Prefix.Addr().Is4() {
			bind = netip.IPv4Unspecified()
		}
	}
	network := "udp6"
	if bind.Is4() {
		network = "udp4"
	}
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(netip.AddrPortFrom(bind, 0)))
	if err != nil {
		return nil, netip.Addr{}, errs.Resource("udp: a socket at %v: %v (%s)", bind, err, EnvIface)
	}
	return conn, told, nil
}

// Socket opens a socket as a rank with that environment does whose job has several hosts, for programs that look
// whether one could run. addr is where the other ranks reach it, as in rendezvous.Hello.
func Socket(env func(string) string) (conn *net.UDPConn, addr netip.Addr, err error) {
	o, err := readOptions(env)
	if err != nil {
		return nil, addr, err
	}
	setup, err := rendezvous.FromEnv(env)
	if err != nil {
		return nil, addr, err
	}
	if conn, addr, err = listen(o, setup); err != nil {
		return nil, addr, err
	}
	if err := whole(conn); err != nil {
		conn.Close()
		return nil, addr, err
	}
	return conn, addr, nil
}

// isFour reports whether a socket is one of IPv4.
func isFour(conn *net.UDPConn) bool { return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Is4() }

// digest is what ranks compare of their networks' descriptions.
func digest(g *nets.Graph) string {
	if g == nil {
		return "none"
	}
	sum := sha256.Sum256([]byte(g.String()))
	return hex.EncodeToString(sum[:8])
}

// alwaysLoopback reports whether a service at this address is for this host alone.
func alwaysLoopback(server string) bool {
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// route is the address from which this host reaches server. It tries again until
// patience has passed, since names may take a while to be known, or for a second or so
// if there is no route.
func route(server string, patience time.Duration) (netip.Addr, error) {
	if patience <= 0 {
		patience = rendezvous.DefaultPatience
	}
	end := time.Now().Add(patience)
	var lasting sys.Tries
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		a, err := ifaddr.To(context.Background(), server)
		if err == nil {
			return a, nil
		}
		if lasting.Lasting(err, awake.Now()) || time.Now().Add(pause).After(end) {
			if alwaysLoopback(server) {
				return netip.Addr{}, errs.Resource("udp: no way to the rendezvous on this host, at %s: %v (ip link set lo up)", server, err)
			}
			return netip.Addr{}, errs.Resource("udp: no way to the rendezvous at %s: %v (ARGON_RENDEZVOUS, %s)", server, err, EnvIface)
		}
		time.Sleep(pause)
	}
}

//go:build ofi && cgo

package ofi

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/adapt"
	"github.com/argon-go/argon/conduits/ofi/internal/fabric"
	"github.com/argon-go/argon/conduits/ofi/providers"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/sys/ifaddr"
	"github.com/argon-go/argon/segment"
)

func init() {
	conduits.Register(conduits.Conduit{
		Name: Name, Local: Local, Join: Join, Launch: &conduits.Launch{Rendezvous: true},
	})
}

// choose is the provider that the environment asks for, or the best there is by the rules
// of package providers.
func choose(env func(string) string, iface string) (providers.Choice, error) {
	w, err := providers.FromEnv(env)
	if err != nil {
		return providers.Choice{}, err
	}
	list, err := providers.List()
	if err != nil {
		return providers.Choice{}, err
	}
	if onTCP(w.Name) {
		iface = "" // an interface's addresses are tried as udp's are
	}
	w.Iface = iface
	return providers.Best(providers.Choose(list, w), w)
}

// onTCP reports whether a provider takes any IP address of the machine.
func onTCP(provider string) bool {
	core, _, _ := strings.Cut(provider, ";")
	return core == "net" || core == "tcp"
}

// openEndpoint opens an endpoint of the provider; on TCP at the local address node.
func openEndpoint(c providers.Choice, node string, l conduits.Limits) (*fabric.Endpoint, error) {
	domain := ""
	if !onTCP(c.Name) {
		node, domain = c.Address, c.Domain
	}
	i, err := fabric.Find(c.Name, node, domain)
	if err != nil {
		return nil, err
	}
	if need := uint64(frameBytes(l)); i.MaxMsg < need {
		return nil, errs.NotSupported("ofi: %s carries messages of %d bytes; the job's frames have %d (Config.MaxMedium)", i.Provider, i.MaxMsg, need)
	}
	if i.Receives < receives {
		return nil, errs.NotSupported("ofi: %s has room for %d messages to be received; %d are needed", i.Provider, i.Receives, receives)
	}
	return fabric.Open(i, max(4096, i.Sends+receives))
}

// defaultCredits is how many messages of a class may be under way to a rank, unless it is asked for
// another number. On net a flood of messages of 16 bytes took 0.30 us each with 64 of them, 0.22 with
// 128, 0.13 with 256 and 0.12 with 512: a frame holds some two hundred, and credit returns when
// half of it has been taken. What a rank keeps of frames it has not polled for is bounded by window.
const defaultCredits = 256

// limitsOf returns the limits that c asks for.
func limitsOf(c conduits.Config) (conduits.Limits, error) {
	if c.Credits == 0 {
		c.Credits = defaultCredits
	}
	return c.Limits(Name)
}

// Local opens all ranks of a job in this process, which reach each other over the
// loopback interface.
func Local(n int, c conduits.Config) ([]conduits.Endpoint, error) {
	return adapt.Local(Name, Open)(n, c)
}

// jobs numbers the jobs of this process.
var jobs atomic.Uint32

// MaxLocal is the largest size of a job in one process: each rank has a completion queue
// and connections to the others.
const MaxLocal = 256

// Open is Local without what package adapt adds.
func Open(n int, c conduits.Config) ([]conduits.Transport, error) {
	limits, err := limitsOf(c)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > MaxLocal {
		return nil, errs.BadArg("ofi: %d ranks in one process; 1 to %d (-n)", n, MaxLocal)
	}
	p, err := choose(os.Getenv, os.Getenv(jobenv.Iface))
	if err != nil {
		return nil, errs.Misstarted(err)
	}
	b := &board{n: n, all: make(chan struct{}), over: make(chan struct{}), attached: make([]conduits.Attached, n), cards: make([][]byte, n)}
	id := uint32(os.Getpid())<<16 ^ jobs.Add(1)
	ts := make([]conduits.Transport, n)
	for i := range ts {
		ep, err := openEndpoint(p, "127.0.0.1", limits)
		if err == nil {
			var t *transport
			if t, err = newTransport(seat{b, i}, i, n, id, limits, ep); err == nil {
				b.mu.Lock()
				b.ranks, ts[i] = append(b.ranks, t), t
				b.mu.Unlock()
				continue
			}
			ep.Close()
		}
		for _, t := range b.ranks {
			t.release()
		}
		return nil, err
	}
	return ts, nil
}

// board is the control of a job whose ranks are in one process.
type board struct {
	n int

	mu       sync.Mutex
	ranks    []*transport // appended to by Open alone
	count    int
	gone     int // ranks whose endpoints are closed
	attached []conduits.Attached
	cards    [][]byte
	all      chan struct{} // closed when all have attached
	failed   atomic.Pointer[conduits.PeerError]
	over     chan struct{} // closed when failed is set
}

// seat is a rank's place at the board.
type seat struct {
	*board
	rank int
}

func (s seat) attach(size uint64, rights segment.Rights, card []byte) ([]conduits.Attached, [][]byte, error) {
	b := s.board
	b.mu.Lock()
	b.attached[s.rank], b.cards[s.rank] = conduits.Attached{Size: size, Rights: rights}, card
	if b.count++; b.count == b.n {
		close(b.all)
	}
	b.mu.Unlock()
	select {
	case <-b.all:
		return b.attached, b.cards, nil
	case <-b.over:
		return nil, nil, b.failed.Load()
	}
}

func (s seat) fail(rank int, err error) {
	b := s.board
	if b.failed.CompareAndSwap(nil, &conduits.PeerError{Rank: rank, Err: err}) {
		close(b.over)
		for _, t := range b.opened() {
			t.hearFailure()
		}
	}
}

// opened are the ranks that are open so far.
func (b *board) opened() []*transport {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ranks
}

func (s seat) failure() *conduits.PeerError { return s.failed.Load() }

func (s seat) leave() {
	for _, t := range s.opened() {
		if t.rank != s.rank {
			t.departed(s.rank)
		}
	}
}

func (s seat) detached() bool { return true }

// suspect waits for the rank to leave: it is closed, or the provider has broken down.
func (s seat) suspect(rank int, err error) { s.opened()[s.rank].doubt(rank, err) }

// Join opens this process's rank of a job. It returns when all ranks are there.
func Join(j conduits.Job, c conduits.Config) (conduits.Endpoint, error) {
	return conc.UpcastOne[conduits.Endpoint](openProcess(j, c))
}

// openProcess is Join for a conduit that uses this one, too.
func openProcess(j conduits.Job, c conduits.Config) (e farEndpoint, err error) {
	if c.MaxSegment == 0 {
		c.MaxSegment = uint64(segment.MaxAttach) // nothing is set aside before Attach
	}
	limits, err := limitsOf(c)
	if err != nil {
		return e, err
	}
	if j.Rank < 0 || j.Rank >= j.Size {
		return e, errs.BadArg("ofi: rank %d of %d does not exist (%s)", j.Rank, j.Size, jobenv.Rank)
	}
	iface := j.Env(jobenv.Iface)
	p, err := choose(j.Env, iface)
	if err != nil {
		return e, errs.Misstarted(err)
	}
	setup, err := rendezvous.FromEnv(j.Env)
	if err != nil {
		return e, errs.Misstarted(err)
	}
	node := ""
	if onTCP(p.Name) {
		if node, err = localAddr(iface, setup); err != nil {
			return e, errs.Misstarted(err)
		}
	}
	ep, err := openEndpoint(p, node, limits)
	if err != nil {
		return e, err
	}
	t, err := join(j, limits, setup, ep)
	if err != nil {
		ep.Close()
		return e, err
	}
	mates, client := 0, t.job.(*member).client
	for r := range j.Size {
		if client.Host(r) == client.Host(j.Rank) {
			mates++
		}
	}
	t.apart = conc.HaveProcessors(mates)
	return farEndpoint{adapt.NewProcess(Name, t, mates), t}, nil
}

// localAddr is the address at which other ranks reach this one; "" if the provider is to
// choose.
func localAddr(iface string, setup rendezvous.Setup) (string, error) {
	a, err := ifaddr.To(context.Background(), setup.Server)
	if err == nil && iface != "" {
		a, err = ifaddr.Choose(iface, a.Is4())
	}
	if err != nil {
		return "", errs.Resource("ofi: no way to the rendezvous at %s: %v (%s, %s)", setup.Server, err, jobenv.Rendezvous, jobenv.Iface)
	}
	if host, _, err := net.SplitHostPort(setup.Server); iface == "" && a.IsLoopback() && err == nil {
		// The service's name may lead back to this host by the loopback interface.
		if s, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !s.IsLoopback()) {
			return "", nil
		}
	}
	return a.String(), nil
}

// member is the control of a rank that is a process.
type member struct {
	rank, size int
	client     *rendezvous.Client
	t          *transport
	all        chan struct{} // closed when all have attached
	over       chan struct{} // closed when failed is set
	failed     atomic.Pointer[conduits.PeerError]
	failing    atomic.Bool // this rank has declared itself failed
	heard      func(*conduits.PeerError)
	ready      atomic.Bool // t is set
	early      sync.Mutex  // guards gone
	gone       []int       // left before t was set
}

// join joins the rendezvous and makes the transport.
func join(j conduits.Job, limits conduits.Limits, setup rendezvous.Setup, ep *fabric.Endpoint) (*transport, error) {
	name, err := ep.Name()
	if err != nil {
		return nil, err
	}
	m := &member{rank: j.Rank, size: j.Size, all: make(chan struct{}), over: make(chan struct{}), heard: j.Failed}
	hello := rendezvous.Hello{
		Rank: j.Rank, Size: j.Size, Host: hostOf(j.Env),
		Agree: fmt.Sprintf("ofi 1, provider %s (%s)%s, libfabric %s, mr_mode %#x, order %#x, medium %d, credits %d, segment %d",
			ep.Provider, providers.EnvName, family(ep, name), ep.Version, ep.MR, ep.Order, limits.MaxMedium, limits.Credits, limits.MaxSegment),
	}
	m.client, err = setup.Join(context.Background(), hello, rendezvous.Events{
		Attached: func() { close(m.all) },
		Failed: func(rank, status int, cause string) {
			m.set(&conduits.PeerError{Rank: rank, Err: errs.Carried(status, cause), Own: rank == m.rank && !m.failing.Load()})
		},
		Left: m.departed,
	})
	if err != nil {
		return nil, err
	}
	instance := m.client.Instance()
	t, err := newTransport(m, j.Rank, j.Size, binary.LittleEndian.Uint32(instance[:]), limits, ep)
	if err != nil {
		m.client.Fail(j.Rank, errs.CarriedStatus(err), err.Error())
		_ = m.client.Close()
		return nil, err
	}
	t.setDeadTime(cmp.Or(setup.DeadTime, defaultDeadTime))
	m.early.Lock()
	m.t = t
	m.ready.Store(true)
	gone := m.gone
	m.early.Unlock()
	for _, r := range gone {
		t.departed(r)
	}
	return t, nil
}

// family says for Agree of which protocol the address is: a provider takes no other one's.
func family(ep *fabric.Endpoint, addr []byte) string {
	if !ep.IP || len(addr) < 2 {
		return ""
	}
	switch binary.NativeEndian.Uint16(addr) {
	case syscall.AF_INET:
		return " on IPv4 (" + jobenv.Iface + ")"
	case syscall.AF_INET6:
		return " on IPv6 (" + jobenv.Iface + ")"
	}
	return ""
}

func (m *member) departed(rank int) {
	m.early.Lock()
	t := m.t
	if t == nil {
		m.gone = append(m.gone, rank)
	}
	m.early.Unlock()
	if t != nil {
		t.departed(rank)
	}
}

// set makes p the job's failure, unless there is one.
func (m *member) set(p *conduits.PeerError) {
	if !m.failed.CompareAndSwap(nil, p) {
		return
	}
	if m.heard != nil {
		m.heard(p)
	}
	close(m.over)
	if m.ready.Load() {
		m.t.hearFailure()
	}
}

// cardsOf is the key of part i of the table of cards.
func cardsOf(i int) string { return fmt.Sprintf("ofi/cards/%d", i) }

// attach tells the rendezvous the card. Rank 0 makes a table of all, so that there are as
// many questions as ranks.
func (m *member) attach(size uint64, rights segment.Rights, card []byte) (all []conduits.Attached, cards [][]byte, err error) {
	if cards, err = m.exchange(card); err == nil {
		err = m.client.Attach(size, uint32(rights))
	}
	if err == nil {
		select {
		case <-m.all:
		case <-m.over:
		}
	}
	if f := m.failed.Load(); f != nil {
		return nil, nil, f
	}
	if err != nil {
		return nil, nil, err
	}
	all = make([]conduits.Attached, m.size)
	for r := range all {
		size, rights := m.client.Segment(r)
		all[r] = conduits.Attached{Size: size, Rights: segment.Rights(rights)}
	}
	return all, cards, nil
}

// mostCard is the longest card, bytes.
const mostCard = 1 << 10

// exchange gives all ranks' cards for this one's.
func (m *member) exchange(card []byte) ([][]byte, error) {
	if len(card) > mostCard {
		return nil, errs.NotSupported("ofi: an address of %d bytes; at most %d", len(card), mostCard)
	}
	ctx := context.Background() // ends when the job fails
	if err := m.client.Put(fmt.Sprintf("ofi/card/%d", m.rank), card); err != nil {
		return nil, err
	}
	per := rendezvous.MaxValue / (mostCard + 2)
	if m.rank == 0 {
		for first := 0; first < m.size; first += per {
			var part []byte
			for r := first; r < min(first+per, m.size); r++ {
				c, err := m.client.Get(ctx, fmt.Sprintf("ofi/card/%d", r))
				if err != nil {
					return nil, err
				}
				part = binary.LittleEndian.AppendUint16(part, uint16(len(c)))
				part = append(part, c...)
			}
			if err := m.client.Put(cardsOf(first/per), part); err != nil {
				return nil, err
			}
		}
	}
	var cards [][]byte
	for first := 0; first < m.size; first += per {
		part, err := m.client.Get(ctx, cardsOf(first/per))
		if err != nil {
			return nil, err
		}
		for len(part) >= 2 {
			n := int(binary.LittleEndian.Uint16(part))
			if n > len(part)-2 {
				break
			}
			cards, part = append(cards, part[2:2+n]), part[2+n:]
		}
	}
	if len(cards) != m.size {
		return nil, errs.BadArg("ofi: the table of addresses has %d ranks, not %d", len(cards), m.size)
	}
	return cards, nil
}

// fail waits until the rendezvous has said which rank has failed, unless it is this one,
// so that two ranks that lose each other give the failure one name.
func (m *member) fail(rank int, err error) {
	if m.failed.Load() != nil {
		return
	}
	if rank == m.rank {
		m.failing.Store(true)
	}
	m.client.Fail(rank, errs.CarriedStatus(err), err.Error())
	m.hearVerdict(rank, err)
	m.set(&conduits.PeerError{Rank: rank, Err: err})
}

func (m *member) failure() *conduits.PeerError { return m.failed.Load() }

func (m *member) suspect(rank int, err error) { m.t.doubt(rank, err) }

func (m *member) leave() {
	if m.failed.Load() == nil {
		_ = m.client.Leave() // if it cannot, it counts as failed: no rank is misled
	}
	_ = m.client.Close()
}

func (m *member) detached() bool { return false }

package udp

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/sys/awake"
)

// Before a job on several hosts begins, the first rank of each host finds out
// whether datagrams pass between its socket and those of the other hosts, in both
// directions: a firewall that lets TCP through and drops UDP otherwise shows as a
// rank that does not answer, and only when something is first sent to it. No
// datagram of an engine is sent before, since no rank has attached.
//
// A probe names its sender and its target, and reports whether its sender has heard from
// there. Each side sends probes until it has heard the other one, has been told that
// it was heard, and has measured a round trip. Each host then reports by the
// rendezvous which it has heard; rank 0 sums up. All hosts answer until it has.
//
// Probes have numbers, and an answer has that of the probe that it answers at once.
// Those that were sent after the target was heard find it listening, so that the time
// until their answer comes is a round trip: engines begin with it instead of the third
// of a second that RFC 9002 assumes of unknown paths (section 6.2.2).

const (
	// probeEvery is how far probes to one host are apart.
	probeEvery = 100 * time.Millisecond
	// probeLeast is for how long hosts are waited for at least, counted from when all
	// of them listen: several round trips of any path, and 50 probes, so that loss
	// alone does not count as a firewall.
	probeLeast = 5 * time.Second
	// probeMost is for how long at most: a dead time of a day is for debuggers, and a
	// firewall is to be found before.
	probeMost = time.Minute
	// fullMesh is up to how many hosts all pairs are tried.
	fullMesh = 64
	// strides is, with more hosts, how many each one tries in each direction: the next
	// one, and others at distances that are the same for all hosts.
	strides = 4
	// namedPairs is how many pairs the error names.
	namedPairs = 8
	// mostHosts bounds the values at the rendezvous, of which there can be 65,536.
	mostHosts = 1 << 13
)

// A probe is
//
//	byte 0       0xA5, which begins no datagram of package seal
//	byte 1       1 if the sender has heard from the host that it is for, plus 2 if it
//	             has been told that it was heard, and has measured a round trip, so
//	             that it needs no answer
//	bytes 2-5    the sender's host, big-endian, as the rendezvous numbers them, plus the number
//	             of hosts for each path between the two before the one that it takes
//	bytes 6-9    the host that it is for, likewise
//	bytes 10-13  the number of the probe, of those from one host to another, from 1 on
//	bytes 14-17  the number of the one that it answers, or 0
//	bytes 18-33  HMAC-SHA-256 of the above, cut to 16 bytes, by a key of this job
//
// and zeros, so that it is as long as the least that the path has to carry.
const (
	probeKind = 0xa5
	probeBody = 18
	probeSize = probeBody + 16

	probeHeard, probeDone = 1, 2
)

// leastTrip is the least value of a measured round trip: a rank that computes answers some
// milliseconds late.
const leastTrip = time.Millisecond

// tried is the state of a host's probes to another one.
type tried struct {
	heard bool          // it has been heard,
	told  bool          // and has said that it has heard this one
	sent  uint32        // number of the last probe sent,
	timed uint32        // and of the first one sent after it was heard; 0: none was
	at    []time.Time   // when that one and those after it were sent
	trip  time.Duration // the shortest round trip; 0: none is known
}

// done reports whether nothing is left to be found out.
func (w *tried) done() bool { return w.heard && w.told && w.trip > 0 }

// mostTimed bounds tried.at.
const mostTimed = 1 << 10

// prober is one host's part.
type prober struct {
	m      *member
	conn   *net.UDPConn
	key    [jobkey.Size]byte
	firsts []int     // first rank of each host
	self   int       // this host
	w      *networks // nil if the hosts have one network
	peers  []int     // numbers to try, ascending: a host, plus the number of hosts for each further path
	ways   []tried
	size   int                              // of a probe
	write  func(b []byte, number int) error // most errors are as good as a loss
	failed error                            // why no probe can be sent
	seed   [16]byte                         // decides which hosts are tried
}

// paths checks that datagrams pass between this host and others, on behalf of the
// first rank of each host; other ranks are only told what round trips it measures,
// which member.trip knows when Attach returns. Its error names the pairs of hosts
// between which none pass. It takes two round trips or so if all is well, and else the
// dead time, at least 5 s and at most a minute.
func (m *member) paths(conn *net.UDPConn, key jobkey.Key, o options) error {
	own := m.client.Addr(m.rank).Addr()
	p := &prober{m: m, conn: conn, self: m.client.Host(m.rank), size: floor(isFour(conn)), w: m.nets.Load(), seed: m.client.Instance()}
	if o.datagram > 0 {
		p.size = min(p.size, o.datagram)
	}
	for r := range m.size {
		if m.client.Host(r) == len(p.firsts) {
			p.firsts = append(p.firsts, r)
		}
	}
	if p.self >= mostHosts {
		return nil
	}
	first := p.firsts[p.self]
	p.firsts = p.firsts[:min(len(p.firsts), mostHosts)]
	instance := m.client.Instance()
	p.key = key.ForJob(instance[:]).Seed("paths")
	p.peers = p.tries(p.self)
	p.ways = make([]tried, len(p.peers))
	if first != m.rank {
		m.awaited.Add(1)
		go func() {
			defer m.news()
			// Without an answer the job has failed, or this rank has left.
			if b, err := m.client.Get(context.Background(), pathsName("report", p.self)); err == nil {
				_, _, trips := parseReport(b)
				p.measured(trips)
			}
		}()
		return nil
	}
	p.write = func(b []byte, number int) error {
		host := p.host(number)
		to := m.client.Addr(p.firsts[host])
		if p.w != nil {
			to = p.w.addr(p.firsts[host] + number/len(p.firsts)*m.size)
		}
		_, err := conn.WriteToUDPAddrPort(b, to)
		return errTooLong(err, len(b), own)
	}

	verdict := make(chan error, 3) // one for each that may send
	begun := make(chan struct{})
	go func() {
		err := p.m.client.Put(pathsName("begun", p.self), nil)
		if err == nil {
			_, err = p.m.client.Get(context.Background(), pathsBegun)
		}
		if err != nil {
			verdict <- err
			return
		}
		close(begun)
		if p.self != 0 {
			_, err = p.m.client.Get(context.Background(), pathsDone)
			verdict <- err
		}
	}()
	if p.self == 0 {
		go func() { verdict <- p.judge() }()
	}
	return p.run(min(max(o.dead, probeLeast), probeMost), describeHost(o.host), begun, verdict)
}

// Keys of the rendezvous' store for the check of paths, beside a report of each host.
const (
	pathsBegun = "udp/paths/begun" // all listen
	pathsDone  = "udp/paths/done"  // all paths work; else the job fails
)

func pathsName(what string, host int) string { return "udp/paths/" + what + "/" + strconv.Itoa(host) }

// probed is the hosts, of so many, that a host tries: all others, or of more than
// fullMesh those at some distances, which the job's number decides. A host is tried
// by those which it tries.
func probed(hosts, self int, seed uint64) []int {
	var l []int
	add := func(h int) {
		if h = (h + hosts) % hosts; h != self && !slices.Contains(l, h) {
			l = append(l, h)
		}
	}
	if hosts <= fullMesh {
		for h := range hosts {
			add(h)
		}
	} else {
		r := rand.New(rand.NewPCG(seed, 0))
		for i := range strides {
			d := 1
			if i > 0 {
				d += r.IntN(hosts - 1)
			}
			add(self + d)
			add(self - d)
		}
	}
	slices.Sort(l)
	return l
}

// run sends and answers probes until rank 0 has summed up.
func (p *prober) run(limit time.Duration, host string, begun <-chan struct{}, verdict chan error) error {
	defer p.conn.SetReadDeadline(time.Time{})
	var silence *awake.Count // since all listen
	next, reported := time.Now(), false
	report := func() {
		reported = true
		text, trips := p.report(host)
		p.measured(trips)
		go func() {
			if err := p.m.client.Put(pathsName("report", p.self), text); err != nil {
				verdict <- err
			}
		}()
	}
	b := make([]byte, mostDatagram)
	for {
		select {
		case err := <-verdict:
			return err
		case <-begun:
			silence, begun = awake.NewCount(limit, 0, awake.Now()), nil
		default:
		}
		now := time.Now()
		if !now.Before(next) {
			next = now.Add(probeEvery)
			for i := range p.ways {
				if !p.ways[i].done() {
					p.send(i, 0, now)
				}
			}
		}
		// Short enough to look for the verdict.
		if err := p.conn.SetReadDeadline(now.Add(5 * time.Millisecond)); err != nil {
			return errs.Resource("udp: %v", err)
		}
		for {
			n, _, err := p.conn.ReadFromUDPAddrPort(b)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			if err == nil { // else an ICMP message, which is no more than a loss
				p.receive(b[:n], time.Now())
			}
		}
		if p.failed != nil {
			return p.failed
		}
		over := silence != nil && silence.Look(awake.Now())
		if !reported && (over || !slices.ContainsFunc(p.ways, func(w tried) bool { return !w.done() })) {
			report()
		}
	}
}

// send sends a probe to a peer, in answer to one with that number if it is not 0.
func (p *prober) send(i int, answer uint32, now time.Time) {
	b := make([]byte, p.size)
	w := &p.ways[i]
	w.sent++
	b[0] = probeKind
	if w.heard {
		b[1] |= probeHeard
		if w.timed == 0 {
			w.timed = w.sent
		}
		if len(w.at) < mostTimed {
			w.at = append(w.at, now)
		}
	}
	if w.done() {
		b[1] |= probeDone
	}
	binary.BigEndian.PutUint32(b[2:], uint32(p.self+p.peers[i]-p.host(p.peers[i])))
	binary.BigEndian.PutUint32(b[6:], uint32(p.peers[i]))
	binary.BigEndian.PutUint32(b[10:], w.sent)
	binary.BigEndian.PutUint32(b[14:], answer)
	copy(b[probeBody:], p.sum(b[:probeBody]))
	if err := p.write(b, p.peers[i]); err != nil {
		p.failed = err
	}
}

func (p *prober) sum(b []byte) []byte {
	h := hmac.New(sha256.New, p.key[:])
	h.Write(b)
	return h.Sum(nil)[:probeSize-probeBody]
}

// receive takes a probe; what is none, or is of no rank of the job, is dropped.
func (p *prober) receive(b []byte, now time.Time) {
	if len(b) < probeSize || b[0] != probeKind || b[1] > probeHeard|probeDone || !hmac.Equal(b[probeBody:probeSize], p.sum(b[:probeBody])) {
		return
	}
	from, to := int(binary.BigEndian.Uint32(b[2:])), int(binary.BigEndian.Uint32(b[6:]))
	if p.host(to) != p.self {
		p.hand(from, to, b)
		return
	}
	i, ok := slices.BinarySearch(p.peers, from)
	if !ok {
		return
	}
	w := &p.ways[i]
	w.heard = true
	if b[1]&probeHeard != 0 {
		w.told = true
	}
	if n := binary.BigEndian.Uint32(b[14:]); w.timed > 0 && n >= w.timed && n-w.timed < uint32(len(w.at)) {
		if d := max(now.Sub(w.at[n-w.timed]), leastTrip); w.trip == 0 || d < w.trip {
			w.trip = d
		}
	}
	if b[1]&probeDone == 0 {
		p.send(i, binary.BigEndian.Uint32(b[10:]), now) // which says that it was heard, so that this ends
	}
}

// hand sends a probe on to the next host of its path.
func (p *prober) hand(from, to int, b []byte) {
	if p.w == nil {
		return
	}
	path := to / len(p.firsts) * p.m.size
	if at := p.w.through(p.firsts[p.host(from)]+path, p.firsts[p.host(to)]+path); at.IsValid() {
		_, _ = p.conn.WriteToUDPAddrPort(b, at) // an error is as good as a loss
	}
}

// host is the host of a number.
func (p *prober) host(number int) int {
	if p.w == nil {
		return number
	}
	return number % len(p.firsts)
}

// tries are the numbers that a host tries, ascending.
func (p *prober) tries(self int) []int {
	l := probed(len(p.firsts), self, binary.BigEndian.Uint64(p.seed[:]))
	if p.w == nil {
		return l
	}
	var all []int
	for _, h := range l {
		for i := range p.w.m.Paths(self, h) {
			all = append(all, h+i*len(p.firsts))
		}
	}
	slices.Sort(all)
	return all
}

// report lists this host's name, the hosts it has heard, and the round trips, nanoseconds,
// of the hosts that it has tried, each on a line.
func (p *prober) report(host string) (text []byte, trips []time.Duration) {
	text = append(append(text, host...), '\n')
	for i := range p.ways {
		if p.ways[i].heard {
			text = append(text, '1')
		} else {
			text = append(text, '0')
		}
		trips = append(trips, p.ways[i].trip)
	}
	for i, d := range trips {
		sep := byte(' ')
		if i == 0 {
			sep = '\n'
		}
		text = strconv.AppendInt(append(text, sep), int64(d), 10)
	}
	return text, trips
}

// parseReport takes a report apart.
func parseReport(b []byte) (name, heard string, trips []time.Duration) {
	name, rest, _ := strings.Cut(string(b), "\n")
	heard, rest, _ = strings.Cut(rest, "\n")
	for _, s := range strings.Fields(rest) {
		ns, err := strconv.ParseInt(s, 10, 64)
		if err != nil || ns < 0 {
			ns = 0
		}
		trips = append(trips, time.Duration(ns))
	}
	return name, heard, trips
}

// measured tells the member what round trips to the hosts that are tried have been
// measured; one of 0 has not.
func (p *prober) measured(trips []time.Duration) {
	by := map[int]time.Duration{}
	for i, d := range trips[:min(len(trips), len(p.peers))] {
		if d > 0 {
			by[p.peers[i]] = d
		}
	}
	p.m.trips.Store(&by)
}

// trip is the round trip to another host by a path, as far as the paths' check has measured
// it; 0 if it has not.
func (m *member) trip(host, path int) time.Duration {
	if w := m.nets.Load(); w != nil {
		host += path * len(w.firsts)
	}
	if by := m.trips.Load(); by != nil {
		return (*by)[host]
	}
	return 0
}

// judge runs on rank 0: it waits for all hosts to listen, and then for their reports.
// If paths do not work it fails the job with an error that names them.
func (p *prober) judge() error {
	begun := func(h int) error {
		_, err := p.m.client.Get(context.Background(), pathsName("begun", h))
		return err
	}
	names, heard := make([]string, len(p.firsts)), make([]string, len(p.firsts))
	report := func(h int) error {
		b, err := p.m.client.Get(context.Background(), pathsName("report", h))
		name, bits, _ := parseReport(b)
		names[h], heard[h] = errs.Printable(name, 100), bits
		return err
	}
	if err := each(len(p.firsts), begun); err != nil {
		return err
	}
	if err := p.m.client.Put(pathsBegun, nil); err != nil {
		return err
	}
	if err := each(len(p.firsts), report); err != nil {
		return err
	}
	lost := map[[2]int]bool{}
	for to := range p.firsts {
		for i, from := range p.tries(to) {
			if i >= len(heard[to]) || heard[to][i] != '1' {
				lost[[2]int{from, to + from - p.host(from)}] = true
			}
		}
	}
	if text := p.verdict(lost, names); text != "" {
		p.m.client.Fail(rendezvous.NoRank, 1, text)
		return errors.New(text)
	}
	return p.m.client.Put(pathsDone, nil)
}

// each calls f for 0 to n-1, some at once, and returns an error of one of them.
func each(n int, f func(i int) error) error {
	const most = 256
	turns, ended := make(chan struct{}, most), make(chan error, n)
	for i := range n {
		turns <- struct{}{}
		go func() {
			ended <- f(i)
			<-turns
		}()
	}
	var first error
	for range n {
		if err := <-ended; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// verdict says between which hosts datagrams are lost; "" if between none.
func (p *prober) verdict(lost map[[2]int]bool, names []string) string {
	if len(lost) == 0 {
		return ""
	}
	knob := EnvIface
	who := func(number int) string {
		h := p.host(number)
		r := p.firsts[h]
		if p.w != nil {
			return fmt.Sprintf("%s (rank %d)", names[h], r)
		}
		return fmt.Sprintf("%s (rank %d at %v)", names[h], r, p.m.client.Addr(r))
	}
	var pairs [][2]int
	for l := range lost {
		if l[0] < l[1] || !lost[[2]int{l[1], l[0]}] {
			pairs = append(pairs, l)
		}
	}
	slices.SortFunc(pairs, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	var said []string
	for i, l := range pairs {
		by := ""
		if p.w != nil {
			a := p.w.m.Paths(p.host(l[0]), p.host(l[1]))[l[0]/len(p.firsts)]
			by, knob = ", by "+p.w.m.Name(&a, func(h int) string { return names[h] }), EnvNetworks
		}
		if i == namedPairs {
			said = append(said, fmt.Sprintf("and %d more pairs of hosts", len(pairs)-i))
			break
		}
		if lost[[2]int{l[1], l[0]}] {
			said = append(said, fmt.Sprintf("between %s and %s in either direction%s", who(l[0]), who(l[1]), by))
		} else {
			said = append(said, fmt.Sprintf("from %s to %s, though they pass back%s", who(l[0]), who(l[1]), by))
		}
	}
	return "udp: no datagrams pass " + strings.Join(said, "; ") +
		": a firewall or network policy drops UDP there (all ports must be open between the hosts of a job), or the addresses are of another network (" + knob + ")" +
		fmt.Sprintf(", or the path carries none of %d bytes (%s)", p.size, EnvDatagram)
}

// describeHost returns a host's name for messages: gasrun's without the number that tells
// hosts of one name apart, or the system's.
func describeHost(name string) string {
	if number, rest, ok := strings.Cut(name, "."); ok {
		if _, err := strconv.Atoi(number); err == nil {
			return rest
		}
	}
	if name == rendezvous.ThisHost() {
		if h, err := os.Hostname(); err == nil {
			return h
		}
	}
	return name
}

package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/env"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/awake"
	"github.com/argon-go/argon/internal/sys/ifaddr"
)

const (
	startsAtOnce = 32 // deputies that are started at the same time
	// startSettle is the part of the start's time limit from the first host that fails to start
	// until others are not waited for: 3 s of a minute.
	startSettle = 20
)

// HostError is the failure of a host that ended the job, or kept it from starting.
type HostError struct {
	Host  string // as messages call it
	Cause string
}

// NotAwaited begins the cause of a host that had not answered yet when others had failed: nothing is
// known of it.
const NotAwaited = "had not answered when other hosts had failed"

// Error names the host and the cause.
func (e *HostError) Error() string { return fmt.Sprintf("host %s: %s", e.Host, e.Cause) }

// routeTo is the address of this machine that the named host would see; it is
// invalid if that cannot be known without asking the host.
func routeTo(ctx context.Context, name string) netip.Addr {
	if i := strings.LastIndexByte(name, '@'); i >= 0 {
		name = name[i+1:]
	}
	a, err := ifaddr.To(ctx, net.JoinHostPort(name, "9"))
	if err != nil || a.Zone() != "" {
		return netip.Addr{}
	}
	return a
}

// routeLimit is for finding out the addresses of hosts here. ssh may know hosts
// under names that no other job does.
const routeLimit = 3 * time.Second

// tellServers decides under which addresses hosts look for the rendezvous, which
// is at port.
func (j *job) tellServers(port uint16) error {
	own, common := ifaddr.Own(), commonRoute(j.hosts)
	for _, h := range j.hosts {
		addrs := []netip.Addr{j.listenAt}
		if !j.listenAt.IsValid() {
			addrs = serverAddrs(h.route, common, own, h.Here)
		}
		if len(addrs) == 0 {
			return h.failure("this machine has no address that it could be reached from there at, or only such as mean something else on each link (-iface)")
		}
		for _, a := range addrs {
			h.task.Servers = append(h.task.Servers, netip.AddrPortFrom(a, port).String())
		}
	}
	return nil
}

// commonRoute is the route to one of the hosts that fits most of them: one that
// leads to other machines rather than to this one, of IPv4 rather than IPv6. It is
// invalid if no route is known.
func commonRoute(hosts []*host) (best netip.Addr) {
	value := func(a netip.Addr) (v int) {
		if !a.IsLoopback() {
			v = 2
		}
		if a.Is4() {
			v++
		}
		return v
	}
	for _, h := range hosts {
		if h.route.IsValid() && (!best.IsValid() || value(h.route) > value(best)) {
			best = h.route
		}
	}
	return best
}

// serverAddrs lists the addresses where a host may find the rendezvous, the most
// promising first: that which leads there, route, unless other hosts could not
// speak with ranks which have taken that way, since they use the other family of
// addresses or because it does not leave this machine; then common, which is
// another host's, and own, all that this machine has. route and common are
// invalid if they are not known. here says that the host is this machine.
func serverAddrs(route, common netip.Addr, own []netip.Addr, here bool) []netip.Addr {
	var addrs []netip.Addr
	add := func(a netip.Addr) {
		if a.IsValid() && !slices.Contains(addrs, a) {
			addrs = append(addrs, a)
		}
	}
	if route.IsLoopback() == common.IsLoopback() && route.Is4() == common.Is4() {
		add(route)
	}
	add(common)
	if !route.IsLoopback() {
		add(route)
	}
	for _, a := range own {
		add(a)
	}
	if here || route.IsLoopback() {
		add(ifaddr.Loopback())
	}
	return addrs
}

// note tells the user what is worth knowing about a host.
func (j *job) note(host, text string) {
	if !j.Quiet {
		j.log.printf("gasrun: host %s: %s", host, text)
	}
}

// activity has the host of a rank look at its process.
func (j *job) activity(rank int) (a sys.Activity, pid int, ok bool) {
	for _, h := range j.hosts {
		if rank >= h.first && rank < h.first+h.size {
			p, ok := h.look([]int{rank}, true)[rank]
			return p.did, p.pid, ok
		}
	}
	return a, 0, false
}

// prepare makes what the hosts of a job have in common.
func (j *job) prepare(path string, spawn *spawner) error {
	places, err := j.place()
	if err != nil {
		return err
	}
	allHere, here := true, 0
	for _, p := range places {
		if p.Here {
			here += p.size
		}
		h := newHost(j, p)
		j.hosts = append(j.hosts, h)
		for r := p.first; r < p.first+p.size; r++ {
			j.ranks[r].host = h
		}
		allHere = allHere && p.Here
	}
	if j.memory, err = j.meet(allHere); err != nil {
		return err
	}
	if !allHere {
		self, err := os.Executable()
		if err != nil {
			self = ""
		}
		if j.self, err = openImage(j.Deputy, self); err != nil {
			return errs.Resource("launch: cannot read gasrun's executable to send it: %v", err)
		}
		if j.program, err = openImage(path, path); err != nil {
			return errs.BadArg("launch: cannot read the program to send it to other hosts: %v", err)
		}
	}
	if here > 0 { // hosts that are this machine divide it
		j.seats = takeSeats(j.Bind, here, spawn)
		here = 0
	}
	for _, h := range j.hosts {
		h.task = j.taskOf(h, path)
		if h.Here {
			h.task.Seats = j.seats.part(here, h.size)
			here += h.size
		} else {
			h.task.Bind = j.Bind
		}
	}
	return nil
}

// meet makes the memory of the job, in the conduit's own way unless there is another.
func (j *job) meet(allHere bool) (Memory, error) {
	switch l := j.launch(); {
	case j.Memory != nil:
		return j.Memory(j.Size, j.attached())
	case l.Single:
		return newSimMemory()
	case !l.Rendezvous && l.Memory != nil:
		return l.Memory(j.Size, j.Config.memory())
	case !l.Rendezvous:
		return noMemory{}, nil
	}
	listen := ""
	switch {
	case j.Iface != "":
		var err error
		if j.listenAt, err = ifaddr.Choose(j.Iface, true); err != nil {
			return nil, err
		}
	case allHere:
		j.listenAt = ifaddr.Loopback()
	}
	if j.listenAt.IsValid() {
		listen = j.listenAt.String()
	}
	if !j.hosts[0].own {
		j.process = j.activity
	}
	return newNetMemory(j, listen)
}

// taskOf is the task for the deputy of a host.
func (j *job) taskOf(h *host, path string) task {
	t := task{
		ID: j.id, Conduit: j.Conduit, Program: j.Program, Path: path, Dir: j.Dir, Iface: j.Iface, Temp: j.TempDir,
		Args: j.Args, Env: j.Env, Size: j.Size, First: h.first, Count: h.size, Segment: j.Segment, Large: j.Large, Freeze: j.Freeze,
		DirGiven: j.Dir != "", Shared: j.launch().Memory != nil,
		Stdin: h.first == 0 && j.Stdin != nil, StdinHere: h.first == 0 && j.Stdin != nil && h.Here, SSH: !h.Here,
	}
	m, meets := j.memory.(*netMemory)
	switch {
	case h.own && meets:
		var err error
		if t.Host, err = os.Hostname(); err != nil || t.Host == "" {
			t.Host = "localhost"
		}
		return t
	case h.own:
		return t
	}
	t.Host, t.Key = strconv.Itoa(h.index)+"."+h.label, m.key.Reveal()
	t.Env = append(argonEnviron(), t.Env...)
	if t.Dir == "" {
		t.Dir = workingDir()
	}
	if !h.Here {
		t.Digest, t.Trace = j.program.digest, j.Trace != ""
	}
	return t
}

// argonEnviron returns the variables of the launcher's environment that ranks read.
func argonEnviron() []string {
	var all []string
	for _, kv := range os.Environ() {
		if k, _, _ := strings.Cut(kv, "="); env.Known(k) && !Reserved(k) {
			all = append(all, kv)
		}
	}
	return all
}

// startHosts starts all deputies, then all ranks. If one host fails nothing is
// started on any, and the error names all that failed.
func (j *job) startHosts(ctx context.Context, spawn *spawner) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, h := range j.hosts {
		for r := h.first; r < h.first+h.size; r++ {
			if err := j.newStreams(r); err != nil {
				return err
			}
		}
		if h.task.Stdin && !h.task.StdinHere {
			h.input = newMeter()
		}
		h.pump()
	}
	turns := make(chan struct{}, startsAtOnce)
	inTurn := func(f func(h *host) error) error {
		return j.onHosts(ctx, cancel, func(h *host) error {
			select {
			case turns <- struct{}{}:
			case <-ctx.Done():
				return h.failure("%v", context.Cause(ctx))
			}
			defer func() { <-turns }()
			return f(h)
		})
	}
	limited, enough := awake.WithTimeout(ctx, routeLimit)
	defer enough()
	err := inTurn(func(h *host) error {
		if !h.Here && !j.listenAt.IsValid() {
			h.route = routeTo(limited, h.Name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := j.tellServers(j.memory.(*netMemory).server.Addr().Port()); err != nil {
		return err
	}
	err = inTurn(func(h *host) error {
		return h.start(ctx, spawn)
	})
	if err != nil {
		return err
	}
	err = j.onHosts(ctx, cancel, func(h *host) error {
		h.link.send(frameGo, nil)
		select {
		case err := <-h.reports:
			return err
		case <-ctx.Done():
			return h.failure("%v", context.Cause(ctx))
		}
	})
	j.happen() // their process ids
	return err
}

// errStartLimit is why a host that takes too long is given up.
var errStartLimit = errors.New("no answer in time")

// onHosts calls f for all hosts at once. The error names those for which it fails.
// Meanwhile it acts on signals, and ends what takes too long by cancel.
func (j *job) onHosts(ctx context.Context, cancel context.CancelCauseFunc, f func(h *host) error) error {
	type outcome struct {
		h   *host
		err error
	}
	outcomes := make(chan outcome, len(j.hosts))
	for _, h := range j.hosts {
		go func() { outcomes <- outcome{h, f(h)} }()
	}
	limit, stop := awake.NewTimer(j.StartLimit)
	defer stop()
	var settle <-chan time.Time
	errOf := make([]error, len(j.hosts))
	given := false // up
	for left := len(j.hosts); left > 0; {
		select {
		case o := <-outcomes:
			left--
			if o.err == nil {
				continue
			}
			errOf[o.h.index] = o.err
			if settle == nil && !given {
				settle = awake.After(j.StartLimit / startSettle)
			}
		case <-settle:
			given, settle = true, nil
			cancel(errors.New(NotAwaited))
		case <-limit:
			if !given {
				given = true
				cancel(fmt.Errorf("%w (%v, -start-timeout)", errStartLimit, j.StartLimit))
			}
		case s := <-j.Signals:
			switch s {
			case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
				j.status = 128 + int(s.(syscall.Signal))
				j.verdict = fmt.Errorf("ended by %s, before the ranks were started", sys.SignalName(s.(syscall.Signal)))
				given = true
				cancel(j.verdict)
			case syscall.SIGTSTP:
				_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			}
		case <-ctx.Done():
			// Hosts that answered in the call before, as the limit passed, are named by what they do now.
			if j.verdict == nil && !given && !errors.Is(context.Cause(ctx), errStartLimit) {
				given = true
				j.status, j.verdict = 128+int(syscall.SIGTERM), context.Cause(ctx)
			}
			ctx = context.Background() // once is enough
		}
	}
	if j.verdict != nil {
		return j.verdict
	}
	if err := errors.Join(errOf...); err != nil {
		return err
	}
	return nil
}

// feed sends standard input to rank 0, on a host h that is another machine, from the moment
// it waits for it, and until no more is wanted. So input that no rank asks for stays where
// it is, such as the rest of the file in a loop of a shell that reads names of hosts.
func (j *job) feed(h *host) {
	defer j.Stdin.Close()
	buf := make([]byte, chunk)
	for {
		n, err := j.Stdin.Read(buf)
		if n > 0 {
			if !h.input.acquire(n) {
				return
			}
			h.link.send(frameInput, nil, buf[:n])
		}
		if err != nil {
			h.link.send(frameInput, nil, nil)
			return
		}
	}
}

// post has f run by the job's loop.
func (j *job) post(f func()) {
	j.eventMu.Lock()
	defer j.eventMu.Unlock()
	j.events = append(j.events, f)
	select {
	case j.eventful <- struct{}{}:
	default:
	}
}

// happen runs what was posted.
func (j *job) happen() {
	j.eventMu.Lock()
	all := j.events
	j.events = nil
	j.eventMu.Unlock()
	for _, f := range all {
		f()
	}
}

// hostLost notes that a host can no longer be spoken to: its ranks are as good as
// dead.
func (j *job) hostLost(h *host, cause error) {
	first := -1
	for r := h.first; r < h.first+h.size; r++ {
		rk := &j.ranks[r]
		if !rk.live {
			continue
		}
		if first < 0 {
			first = r
		}
		rk.live = false
		j.live--
		rk.order = len(j.ranks) - j.live
		rk.Status, rk.cause, rk.State = jobenv.StatusFailed, "was lost with its host", j.memory.State(r)
	}
	if first < 0 {
		return
	}
	if j.first >= 0 && j.ranks[j.first].follows { // a consequence
		j.first = -1
	}
	j.conclude(jobenv.StatusFailed, cause)
	if !j.dump.begun {
		j.memory.Fail(first, jobenv.StatusFailed, "lost with its "+cause.Error())
	}
	j.terminate(syscall.SIGTERM)
}

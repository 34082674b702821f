package launch

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/sys"
)

// HostError says which host's failure ended the job, or kept it from starting.
type HostError struct {
	Host  string // as messages call it
	Cause string
}

// Error names the host and the cause.
func (e *HostError) Error() string { return fmt.Sprintf("host %s: %s", e.Host, e.Cause) }

const (
	startsAtOnce = 32               // deputies that are started at the same time
	startSettle  = 3 * time.Second  // from the first host that fails to start until others are not waited for
	byeLimit     = 15 * time.Second // for a deputy to clean up
	exitLimit    = 2 * time.Second  // for it, or ssh, to end after that
	killLimit    = 10 * time.Second // for a host to report that killed ranks have ended

	pulse     = 10 * time.Second // between signs of life
	pulsesOut = 6                // at least so many missing: the host is lost
)

// bootNoise bounds what a login on another host may print before the deputy
// speaks.
const bootNoise = 256 << 10

// A host is the launcher's side of one placement: the crew of its ranks. A deputy
// there starts them and says what becomes of them.
type host struct {
	placement
	j     *job
	task  task
	route netip.Addr // address of this machine that leads there; invalid if that is not known
	link  *link      // to the deputy; nil until it has said hello
	in    *os.File
	out   *os.File
	cmd   *exec.Cmd // the deputy, or ssh

	tokenText string
	exited    chan struct{} // closed when cmd has ended
	silent    chan struct{} // closed when its standard error has ended, or is not worth waiting for
	lines     lastLines     // of standard error
	heard     atomic.Bool   // something, since the last pulse
	quiet     atomic.Bool   // the launcher has let go of it: what happens now is no failure
	reports   chan error    // of the start: nil, or why not
	seen      chan map[int]process
	bye       chan frame
	failed    chan struct{} // closed when the connection is lost
	input     *meter        // of standard input; nil if rank 0 is elsewhere
	backlogs  [][2]*backlog // of the ranks' output
	foreign   [][2]bool     // see stream.foreign; of the reader's goroutine until the backlog ends
	pumps     sync.WaitGroup
}

// lastLines keeps the last lines of a deputy's standard error.
type lastLines struct {
	mu   sync.Mutex
	last []string
}

func (l *lastLines) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last = append(l.last, s); len(l.last) > tailLines {
		l.last = l.last[1:]
	}
}

func (l *lastLines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.last, "; ")
}

func newHost(j *job, p placement) *host {
	h := &host{
		placement: p,
		j:         j,
		exited:    make(chan struct{}),
		silent:    make(chan struct{}),
		reports:   make(chan error, 4),
		seen:      make(chan map[int]process, 1),
		bye:       make(chan frame, 1),
		failed:    make(chan struct{}),
		backlogs:  make([][2]*backlog, p.size),
		foreign:   make([][2]bool, p.size),
	}
	for i := range h.backlogs {
		h.backlogs[i] = [2]*backlog{newBacklog(), newBacklog()}
	}
	return h
}

// failure is err as the failure of this host.
func (h *host) failure(format string, args ...any) error {
	return &HostError{Host: h.label, Cause: fmt.Sprintf(format, args...)}
}

// pump copies the output of the host's ranks to their streams.
func (h *host) pump() {
	for i := range h.backlogs {
		for k, st := range []*stream{h.j.ranks[h.first+i].out, h.j.ranks[h.first+i].err} {
			h.pumps.Go(func() {
				b := h.backlogs[i][k]
				for {
					p, ok := b.get()
					if !ok {
						break
					}
					st.take(p)
					h.link.send(frameCredit, []int64{int64(h.first + i), int64(k), int64(len(p))})
				}
				st.end(h.foreign[i][k])
			})
		}
	}
}

// begin starts the deputy and brings it so far that it could start its ranks. If
// ctx ends first so does the deputy.
func (h *host) begin(ctx context.Context, spawn *spawner) error {
	if err := h.launch(spawn); err != nil {
		return h.failure("%v", err)
	}
	stop := context.AfterFunc(ctx, h.kill)
	defer stop()
	err := h.greet()
	if err == nil {
		err = <-h.reports
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		h.kill()
		if ctx.Err() != nil { // that is why there was no answer
			cause := context.Cause(ctx).Error()
			if said := h.lines.text(); said != "" {
				cause += "; it has said: " + said
			}
			return h.failure("%s", cause)
		}
	}
	return err
}

// launch starts the process through which the deputy is reached.
func (h *host) launch(spawn *spawner) error {
	var files []*os.File
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			files = append(files, r, w)
		}
		return r, w, err
	}
	inR, inW, err1 := pipe()
	outR, outW, err2 := pipe()
	errR, errW, err3 := pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		for _, f := range files {
			f.Close()
		}
		return fmt.Errorf("%w%s", err, hint(err))
	}
	var argv []string
	env := os.Environ()
	if h.Here {
		argv = []string{h.j.Deputy}
		env = append(env, EnvDeputy+"=1")
	} else {
		argv = append(append(argv, h.j.ssh()...), h.Name, bootScript(h.token(), h.j.self))
	}
	h.cmd = exec.Command(argv[0], argv[1:]...)
	h.cmd.Env = env
	h.cmd.Stdin, h.cmd.Stdout, h.cmd.Stderr = inR, outW, errW
	// A group of its own, for a terminal's signals are for the launcher, which
	// passes them on. SIGTERM when the launcher dies: a deputy that gets it
	// directly cleans up as it does at the end of its input.
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	var err error
	spawn.do(func() { err = h.cmd.Start() })
	inR.Close()
	outW.Close()
	errW.Close()
	if err != nil {
		inW.Close()
		outR.Close()
		errR.Close()
		hint := ""
		if !h.Here {
			hint = " (-ssh)"
		}
		return fmt.Errorf("cannot start %s: %w%s", argv[0], err, hint)
	}
	h.in, h.out = inW, outR
	go h.complaints(errR)
	go func() {
		_ = h.cmd.Wait() // see cmd.ProcessState
		close(h.exited)
		// What it has started may hold the pipe open (ssh's ControlPersist).
		errR.SetReadDeadline(time.Now().Add(pumpHurry / 4))
	}()
	return nil
}

// token marks the script's line among others. It need not be secret.
func (h *host) token() string {
	if h.tokenText == "" {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		h.tokenText = "gasrun-" + hex.EncodeToString(b[:])
	}
	return h.tokenText
}

// complaints passes the lines of standard error on.
func (h *host) complaints(r *os.File) {
	defer close(h.silent)
	defer r.Close()
	in := bufio.NewReaderSize(r, 4096)
	for {
		line, err := in.ReadSlice('\n')
		if s := strings.TrimRight(string(line), "\r\n \t"); s != "" {
			h.lines.add(s)
			if !h.quiet.Load() || h.j.Verbose {
				h.j.log.printf("gasrun: %s: %s", h.label, s)
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// kill ends the process, and what it has started, now.
func (h *host) kill() {
	h.quiet.Store(true)
	_ = syscall.Kill(-h.cmd.Process.Pid, syscall.SIGKILL)
	h.in.Close()
	h.out.Close()
}

// greet brings the deputy to life and tells it its task.
func (h *host) greet() error {
	r := bufio.NewReaderSize(h.out, 64<<10)
	if !h.Here {
		if err := h.boot(r); err != nil {
			return err
		}
	}
	f, err := readFrame(r)
	if err != nil || f.kind != frameHello || !f.has(1, 0) {
		return h.gone("does not answer as gasrun does", err)
	}
	h.link = newLink(h.in)
	nums, texts := h.task.encode()
	if n := frameSize(nums, texts); n > maxFrame {
		h.link.close()
		return h.failure("arguments and environment of the ranks have %d bytes, at most %d", n, maxFrame)
	}
	h.link.send(frameJob, nums, texts...)
	h.heard.Store(true)
	go h.listen(r)
	go h.beat()
	return nil
}

// boot answers the script, and sends the executable if there is need.
func (h *host) boot(r *bufio.Reader) error {
	for noise := 0; ; {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = nil
		}
		if err != nil {
			return h.gone("ended before it could be used", err)
		}
		text := strings.TrimRight(string(line), "\r\n")
		need, ok, err := bootAnswer(text, h.token())
		switch {
		case err != nil:
			return h.failure("%v", err)
		case ok && need:
			if _, err := io.Copy(h.in, h.j.self.reader()); err != nil {
				return h.gone("did not take gasrun's executable", err)
			}
			return nil
		case ok:
			return nil
		}
		if noise += len(line); noise > bootNoise {
			return h.failure("its login writes more than %d bytes and nothing that gasrun's script would, such as %q", bootNoise, shorten(text))
		}
		if text != "" {
			h.lines.add(shorten(text))
			if h.j.Verbose {
				h.j.log.printf("gasrun: %s: %s", h.label, shorten(text))
			}
		}
	}
}

func shorten(s string) string {
	if len(s) > tailWidth {
		return s[:tailWidth] + "..."
	}
	return s
}

// gone says why the deputy cannot be spoken to: what it, or ssh, has said and how
// it ended are better reasons than err, which is only how that was noticed.
func (h *host) gone(what string, err error) error {
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, os.ErrClosed) {
		what += ": " + err.Error()
	}
	h.in.Close()
	select {
	case <-h.exited:
	case <-time.After(pumpHurry): // as one that talks nonsense does not
		h.kill()
		<-h.exited
	}
	<-h.silent
	cause := h.lines.text()
	if cause == "" {
		cause = what
	}
	name := "gasrun's deputy"
	if !h.Here {
		name = h.j.ssh()[0]
	}
	ws, _ := h.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case ws.Signaled() && !h.quiet.Load():
		cause += fmt.Sprintf(" (%s was killed by %s)", name, sys.SignalName(ws.Signal()))
	case ws.Exited() && ws.ExitStatus() != 0:
		cause += fmt.Sprintf(" (%s exited with status %d)", name, ws.ExitStatus())
	}
	return h.failure("%s", cause)
}

// frameSize is the length of a frame.
func frameSize(nums []int64, texts [][]byte) int {
	n := 20 + 10*len(nums)
	for _, t := range texts {
		n += 10 + len(t)
	}
	return n
}

// listen takes what the deputy says until it ends.
func (h *host) listen(r *bufio.Reader) {
	var err error
	for err == nil {
		var f frame
		if f, err = readFrame(r); err == nil {
			h.heard.Store(true)
			err = h.hear(&f)
		}
	}
	h.link.close()
	close(h.failed)
	var cause error
	if !h.quiet.Load() {
		cause = h.gone("the connection was lost", err)
	}
	for i := range h.backlogs {
		for _, b := range h.backlogs[i] {
			b.end()
		}
	}
	if h.input != nil {
		h.input.stop()
	}
	if cause == nil {
		h.report(h.failure("was given up"))
		return
	}
	h.report(cause)
	h.j.post(func() { h.j.hostLost(h, cause) })
}

// hear acts on one frame of the deputy.
func (h *host) hear(f *frame) error {
	odd := fmt.Errorf("%w %q", errFrame, f.kind)
	index := func(n int64) (int, bool) {
		i := n - int64(h.first)
		return int(i), i >= 0 && i < int64(h.size)
	}
	switch f.kind {
	case frameAlive:
		return nil
	case frameOutput, frameOutEnd:
		if len(f.nums) < 2 || f.nums[1] < 0 || f.nums[1] > 1 {
			return odd
		}
		i, ok := index(f.nums[0])
		if !ok {
			return odd
		}
		switch b := h.backlogs[i][f.nums[1]]; {
		case f.kind == frameOutput && f.has(2, 1):
			b.put(f.texts[0])
		case f.kind == frameOutEnd && f.has(3, 0):
			h.foreign[i][f.nums[1]] = f.nums[2] != 0
			b.end()
		default:
			return odd
		}
	case frameEndings:
		if len(f.nums)%endingNums != 0 || len(f.texts) != len(f.nums)/endingNums {
			return odd
		}
		var all []ending
		for i, cause := range f.texts {
			n := f.nums[endingNums*i:]
			if _, ok := index(n[0]); !ok {
				return odd
			}
			all = append(all, ending{
				rank: int(n[0]), status: int(n[1]), signal: syscall.Signal(n[2]), cause: string(cause),
				user: time.Duration(n[3]), system: time.Duration(n[4]), maxRSS: n[5],
			})
		}
		h.j.post(func() { h.j.ended(all) })
	case frameStarted:
		if !f.has(3, 0) {
			return odd
		}
		if _, ok := index(f.nums[0]); !ok {
			return odd
		}
		rank, pid, cpu := f.num(0), f.num(1), f.num(2)
		if pid <= 0 {
			return odd
		}
		h.j.post(func() { h.j.started(rank, pid, cpu) })
	case frameTaken:
		if !f.has(1, 0) || h.input == nil {
			return odd
		}
		if f.nums[0] < 0 {
			h.input.stop()
		} else {
			h.input.give(f.num(0))
		}
	case frameSeen:
		if len(f.nums)%2 != 0 {
			return odd
		}
		seen := map[int]process{}
		for i := 0; i < len(f.nums); i += 2 {
			seen[f.num(i)] = process{state: byte(f.nums[i+1])}
		}
		select {
		case h.seen <- seen:
		default: // nobody has asked
		}
	case frameBye:
		select {
		case h.bye <- *f:
		default:
		}
	case frameWant:
		go h.sendProgram()
	case frameReady:
		if len(f.texts) == 0 {
			return odd
		}
		if h.j.Verbose {
			h.j.note(h.label, "its ranks find the others at "+string(f.texts[0]))
		}
		for _, note := range f.texts[1:] {
			h.j.note(h.label, string(note))
		}
		h.report(nil)
	case frameRunning:
		h.report(nil)
	case frameRefuse:
		h.report(h.failure("%s", f.text()))
	default:
		return odd
	}
	return nil
}

// endingNums is how many numbers tell of one ending.
const endingNums = 6

// report answers who waits for a step of the start.
func (h *host) report(err error) {
	select {
	case h.reports <- err:
	default: // nobody has asked
	}
}

func (h *host) sendProgram() {
	if h.j.program == nil {
		h.link.send(frameProgram, nil, nil)
		return
	}
	r := h.j.program.reader()
	buf := make([]byte, chunk)
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			h.link.send(frameProgram, nil, buf[:n])
			h.link.settle(window)
		}
		if err != nil {
			break
		}
	}
	h.link.send(frameProgram, nil, nil)
}

// beat sees to it that both sides notice when the other one falls silent.
func (h *host) beat() {
	t := time.NewTicker(pulse)
	defer t.Stop()
	missing, most := 0, patience(pulsesOut, h.j.Env)
	for {
		select {
		case <-h.failed:
			return
		case <-t.C:
		}
		if missing++; h.heard.Swap(false) {
			missing = 0
		}
		if missing >= most {
			h.lose(fmt.Sprintf("no sign of life for %v", pulse*time.Duration(most)))
			return
		}
		h.link.send(frameAlive, nil)
	}
}

// patience is how many pulses may be missing: least, or more if ranks with env in
// their environment bear with silent peers for longer (ARGON_DEADTIME).
func patience(least int, env []string) int {
	dead := envDuration(env, rendezvous.EnvDeadTime)
	return max(least, int(dead/pulse)+1)
}

// lose gives the host up.
func (h *host) lose(why string) {
	h.lines.add(why)
	_ = syscall.Kill(-h.cmd.Process.Pid, syscall.SIGKILL)
	h.out.Close() // what it has started may have the other end
}

func (h *host) signal(ranks []int, sig syscall.Signal, group bool) {
	nums := []int64{int64(sig), 0}
	if group {
		nums[1] = 1
	}
	for _, r := range ranks {
		nums = append(nums, int64(r))
	}
	h.link.send(frameSignal, nums)
}

func (h *host) suspend() {
	h.link.send(frameSuspend, nil)
	h.link.flush(time.Second)
}

func (h *host) resume() { h.link.send(frameResume, nil) }

func (h *host) look(ranks []int) map[int]process {
	select {
	case <-h.seen: // the answer to a question that was given up
	default:
	}
	nums := make([]int64, len(ranks))
	for i, r := range ranks {
		nums[i] = int64(r)
	}
	h.link.send(frameLook, nums)
	select {
	case seen := <-h.seen:
		return seen
	case <-h.failed:
	case <-time.After(time.Second):
	}
	return nil
}

// fail tells the host's ranks that one has failed, where they wait for each other
// in shared memory.
func (h *host) fail(rank, status int, cause string) {
	if h.link != nil {
		h.link.send(frameFail, []int64{int64(rank), int64(status)}, []byte(cause))
	}
}

// end has the deputy clean up, and ends it. All ranks have ended, or must.
func (h *host) end() {
	if h.cmd == nil || h.cmd.Process == nil {
		h.unused()
		return
	}
	if h.link != nil {
		h.link.send(frameEnd, nil)
		select {
		case f := <-h.bye:
			if len(f.nums) > 0 && f.nums[0] > 0 && h.j.Verbose {
				h.j.log.printf("gasrun: killed %d processes that ranks had left behind on %s", f.nums[0], h.label)
			}
			for _, pid := range f.nums[min(1, len(f.nums)):] {
				h.j.log.printf("gasrun: process %d of the job on %s does not die", pid, h.label)
			}
		case <-h.failed:
		case <-time.After(byeLimit):
			h.j.log.printf("gasrun: host %s does not say that it has cleaned up", h.label)
		}
		h.quiet.Store(true)
		h.link.close()
	}
	h.quiet.Store(true)
	select {
	case <-h.exited:
	case <-time.After(exitLimit):
	}
	h.kill()
	<-h.exited
	<-h.silent
	h.unused()
	h.pumps.Wait()
}

// unused ends the streams of a host that has never been heard of.
func (h *host) unused() {
	for i := range h.backlogs {
		for _, b := range h.backlogs[i] {
			b.end()
		}
	}
}

// routeTo is the address of this machine that the named one would see; it is
// invalid if that cannot be known without asking it.
func routeTo(ctx context.Context, name string) netip.Addr {
	if i := strings.LastIndexByte(name, '@'); i >= 0 {
		name = name[i+1:]
	}
	d := net.Dialer{}
	c, err := d.DialContext(ctx, "udp", net.JoinHostPort(name, "9")) // sends nothing
	if err != nil {
		return netip.Addr{}
	}
	defer c.Close()
	a, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil || a.Addr().Zone() != "" {
		return netip.Addr{}
	}
	return a.Addr().Unmap()
}

// ownAddrs lists the addresses under which others may reach this machine, IPv4
// first.
func ownAddrs() []netip.Addr {
	var four, six []netip.Addr
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, n := range addrs {
		p, err := netip.ParsePrefix(n.String())
		if err != nil {
			continue
		}
		switch a := p.Addr().Unmap(); {
		case a.IsLoopback(), a.IsLinkLocalUnicast():
		case a.Is4():
			four = append(four, a)
		default:
			six = append(six, a)
		}
	}
	return append(four, six...)
}

// routeLimit is for finding out the addresses of hosts here. ssh may know hosts
// under names that nobody else does.
const routeLimit = 3 * time.Second

// tellServers decides under which addresses hosts look for the rendezvous, which
// is at port.
func (j *job) tellServers(port uint16) {
	own, common := ownAddrs(), commonRoute(j.hosts)
	for _, h := range j.hosts {
		addrs := []netip.Addr{j.listenAt}
		if !j.listenAt.IsValid() {
			addrs = serverAddrs(h.route, common, own, h.Here)
		}
		for _, a := range addrs {
			h.task.servers = append(h.task.servers, netip.AddrPortFrom(a, port).String())
		}
	}
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
		add(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	return addrs
}

// ssh is the command that starts a deputy on another host.
func (j *job) ssh() []string {
	if len(j.SSH) > 0 {
		return j.SSH
	}
	return sshCommand(envDuration(j.Env, rendezvous.EnvDeadTime))
}

// note tells the user what is worth knowing about a host.
func (j *job) note(host, text string) {
	if !j.Quiet {
		j.log.printf("gasrun: host %s: %s", host, text)
	}
}

// prepareHosts makes what the hosts of a job have in common.
func (j *job) prepareHosts(path string) error {
	places, err := j.place()
	if err != nil {
		return err
	}
	allHere := true
	for _, p := range places {
		j.hosts = append(j.hosts, newHost(j, p))
		allHere = allHere && p.Here
	}
	listen := ""
	switch {
	case j.Iface != "":
		if j.listenAt, err = interfaceAddr(j.Iface); err != nil {
			return err
		}
	case allHere:
		j.listenAt = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	if j.listenAt.IsValid() {
		listen = j.listenAt.String()
	}
	m, err := newHostsMemory(j, listen)
	if err != nil {
		return err
	}
	j.memory = m
	if allHere {
		return nil
	}
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
	return nil
}

// taskOf is what a host has to do.
func (j *job) taskOf(h *host, path string, m *hostsMemory) task {
	t := task{
		id: j.id, host: strconv.Itoa(h.index) + "." + h.label, conduit: j.Conduit,
		program: j.Program, path: path, dir: j.Dir, iface: j.Iface, key: m.key.Reveal(),
		args: j.Args, env: append(argonEnviron(), j.Env...),
		size: j.Size, first: h.first, count: h.size, segment: j.Segment, large: j.Large, freeze: j.Freeze,
		bind: j.Bind == BindCore, dirGiven: j.Dir != "", shared: bootstraps[j.Conduit].shared,
		stdin: h.first == 0 && j.Stdin != nil, ssh: !h.Here,
	}
	if t.dir == "" {
		t.dir, _ = os.Getwd()
	}
	if !h.Here {
		t.digest = j.program.digest
	}
	return t
}

// argonEnviron is what the launcher's environment says to ranks.
func argonEnviron() []string {
	var env []string
	for _, kv := range os.Environ() {
		if k, _, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "ARGON_") && !Reserved(k) {
			env = append(env, kv)
		}
	}
	return env
}

// startHosts starts all deputies, then all ranks. If one host fails nothing is
// started on any, and the error names all that failed.
func (j *job) startHosts(ctx context.Context, path string, spawn *spawner) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m := j.memory.(*hostsMemory)
	for _, h := range j.hosts {
		for r := h.first; r < h.first+h.size; r++ {
			if err := j.newStreams(r); err != nil {
				return err
			}
			j.ranks[r].host = h
		}
		h.task = j.taskOf(h, path, m)
		if h.task.stdin {
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
	limited, enough := context.WithTimeout(ctx, routeLimit)
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
	j.tellServers(m.server.Addr().Port())
	err = inTurn(func(h *host) error {
		return h.begin(ctx, spawn)
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
	if err == nil && j.Stdin != nil {
		go j.feed(j.hosts[0])
	}
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
	limit := time.NewTimer(j.StartLimit)
	defer limit.Stop()
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
				settle = time.After(startSettle)
			}
		case <-settle:
			given, settle = true, nil
			cancel(errors.New("had not answered when other hosts had failed"))
		case <-limit.C:
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
			if j.verdict == nil && !given {
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

// feed sends standard input to rank 0, and closes it when no more is wanted.
func (j *job) feed(h *host) {
	defer j.Stdin.Close()
	buf := make([]byte, chunk)
	for {
		n, err := j.Stdin.Read(buf)
		if n > 0 {
			if !h.input.take(n) {
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
		rk.Status, rk.cause, rk.State = StatusFailed, "was lost with its host", j.memory.State(r)
	}
	if first < 0 {
		return
	}
	if j.first >= 0 && j.ranks[j.first].Status == StatusPeerFailed { // a consequence
		j.first = -1
	}
	j.conclude(StatusFailed, cause)
	if j.dump == nil {
		j.memory.Fail(first, StatusFailed, "lost with its "+cause.Error())
	}
	j.end(syscall.SIGTERM)
}

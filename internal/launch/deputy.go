package launch

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/awake"
	"github.com/argon-go/argon/internal/sys/ifaddr"
)

const (
	reachLimit = 10 * time.Second // for an address of the rendezvous to answer

	// peerSilence is the dead time of ranks unless ARGON_DEADTIME says otherwise; that
	// of conduit udp.
	peerSilence = 10 * time.Second
	// lostGrace is how much longer than the dead time the launcher may be silent, and
	// how long it has to say something when the rendezvous is lost.
	lostGrace = 2 * time.Second
	// windGrace is how long ranks have between SIGTERM and SIGKILL when no launcher
	// says so. With lostGrace, and a pulse for looking, less than 5 s.
	windGrace = time.Second
)

// deputy stands in for the launcher on one host: it starts ranks there, does with
// them what the launcher says, and reports what becomes of them. What that means is
// for the launcher to decide. If the launcher is gone, so are the ranks. The deputy of
// a job of this machine alone is in the launcher's process (host.begin), where frames are
// calls.
type deputy struct {
	task   task
	config *Config                                   // of the ranks
	path   string                                    // of the program
	pipes  func(rank int, outputs [2]*os.File) error // gets the read ends of what a rank writes, before it is started
	link   *link
	outfit outfit
	crew   *crew
	guard  *guard
	spawn  *spawner

	children chan os.Signal
	mu       sync.Mutex // of call and reap

	// Of a process of its own:
	in      chan frame // what the launcher says; closed when it is gone
	temp    string     // directory for what was sent, "" if there is none
	watch   *rendezvous.Watch
	signals chan os.Signal
	meters  [][2]*meter // of the ranks' output
	pumps   [][2]pump
	pumping sync.WaitGroup
	input   *backlog // of rank 0
	stopped bool     // ranks are, with the launcher

	trace      *os.File // that its ranks write, of which the launcher gets all; nil: none
	traceMeter *meter
	tracing    sync.Mutex // of sendTrace
	traceSent  int64
}

// Deputy is the main function of the process that looks after the ranks of one
// host, see Config.Deputy, and returns its exit status. The launcher is at the
// other ends of r and w. The value of EnvDeputy may name a directory that is to be
// removed in the end.
func Deputy(r io.Reader, w io.WriteCloser) int {
	d := &deputy{
		in: make(chan frame), link: newLink(w), spawn: newSpawner(),
		children: make(chan os.Signal, 1), signals: make(chan os.Signal, 4),
	}
	if dir := os.Getenv(EnvDeputy); filepath.IsAbs(dir) {
		d.temp = dir
	}
	os.Unsetenv(EnvDeputy)
	syscall.CloseOnExec(bootFile)
	sys.Catch(d.signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a write that fails is enough
	d.pipes = d.pumpAll
	go d.listen(bufio.NewReaderSize(r, 64<<10))
	d.link.send(frameHello, []int64{int64(os.Getpid())})
	err := d.run()
	d.tearDown()
	d.spawn.stop()
	d.link.close()
	select {
	case <-d.link.done:
	case <-time.After(pumpHurry): // no process takes it
	}
	if err == nil {
		return 0
	}
	var refused *refusal
	if !errors.As(err, &refused) {
		fmt.Fprintln(os.Stderr, "deputy of gasrun:", errs.Line(bare(err), textMost))
	}
	return jobenv.StatusFailed
}

// A refusal is an error that the launcher has been told.
type refusal struct{ error }

// refuse tells the launcher why nothing can be started.
func (d *deputy) refuse(err error) error {
	err = limited(err)
	d.link.send(frameRefuse, nil, []byte(bare(err)))
	return &refusal{err}
}

// listen takes what the launcher says.
func (d *deputy) listen(r *bufio.Reader) {
	defer close(d.in)
	for {
		f, err := readFrame(r)
		if err != nil {
			return
		}
		d.in <- f
	}
}

var (
	errGone = errors.New("the launcher is gone")
	errOdd  = errors.New("the launcher says what makes no sense")
)

// next waits for a frame, before there are ranks.
func (d *deputy) next() (frame, error) {
	for {
		select {
		case f, ok := <-d.in:
			if !ok {
				return f, errGone
			}
			switch f.kind {
			case frameAlive:
				d.alive(&f)
			case frameFail, frameResume, frameSuspend:
			default:
				return f, nil
			}
		case s := <-d.signals:
			return frame{}, fmt.Errorf("ended by %s", sys.SignalName(s.(syscall.Signal)))
		}
	}
}

// alive answers a sign of life, with the time if it has that of the launcher.
func (d *deputy) alive(f *frame) {
	if len(f.nums) > 0 {
		f.nums = []int64{f.nums[0], int64(sys.Monotonic())}
	}
	d.link.send(frameAlive, f.nums)
}

// expect is next for a frame of that kind, or the end of the job, which is io.EOF.
func (d *deputy) expect(kind frameKind) (frame, error) {
	f, err := d.next()
	switch {
	case err != nil:
		return f, err
	case f.kind == frameEnd:
		return f, io.EOF
	case f.kind != kind:
		return f, errOdd
	}
	return f, nil
}

func (d *deputy) run() error {
	f, err := d.expect(frameJob)
	if err == nil && !d.task.decode(&f) {
		err = errOdd
	}
	if err != nil {
		return orderly(err)
	}
	if d.task.StdinHere {
		syscall.CloseOnExec(stdinFile)
	}
	if err := d.prepare(); err != nil {
		var r *refusal
		if errors.As(err, &r) { // the launcher ends it
			_, _ = d.expect(frameEnd)
		}
		return orderly(err)
	}
	if _, err := d.expect(frameGo); err != nil {
		return orderly(err)
	}
	if err := d.start(); err != nil {
		err = d.refuse(err)
		_, _ = d.expect(frameEnd)
		return err
	}
	d.link.send(frameRunning, nil)
	return d.loop()
}

// orderly is err, or nil if the launcher has ended the job before it began.
func orderly(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// gather prepares for ranks as children of this process. With guard, an executable, a guard
// process removes dirs if this one cannot. errOrphans is why orphans do not come here.
func (d *deputy) gather(guard string, dirs []string, exclusive bool) (errOrphans, err error) {
	signal.Notify(d.children, syscall.SIGCHLD)
	errOrphans = holdSubreaper()
	known := []string{jobenv.JobID + "=" + d.task.ID}
	if d.task.Host != "" {
		known = append(known, jobenv.Host+"="+d.task.Host)
	}
	d.crew = &crew{exclusive: exclusive, identity: identityOf(known)}
	if guard != "" {
		d.guard, err = startGuard(guard, d.crew.identity, dirs, d.spawn)
		d.crew.guard = d.guard
	}
	return errOrphans, err
}

// prepare does all that comes before the start of ranks.
func (d *deputy) prepare() error {
	t := &d.task
	for _, kv := range t.Env {
		if k, v, _ := strings.Cut(kv, "="); k == jobenv.ShmDir { // it is for the maker of the memory
			os.Setenv(k, v)
		}
	}
	var dirs []string
	if d.temp != "" {
		dirs = append(dirs, d.temp)
	}
	if _, err := d.gather("/proc/self/exe", dirs, true); err != nil { // where orphans do not come, it does without
		return d.refuse(err)
	}
	notes := make([][]byte, 1) // the first is the server
	if note, err := d.findDir(); err != nil {
		return d.refuse(err)
	} else if note != "" {
		notes = append(notes, []byte(note))
	}
	if err := d.findProgram(); err != nil {
		return err
	}
	if err := d.keepTrace(); err != nil {
		return d.refuse(err)
	}
	key, err := jobkey.Parse(t.Key)
	if err != nil {
		return d.refuse(err)
	}
	t.Key = ""
	server, err := d.reach(key)
	if err != nil {
		return d.refuse(err)
	}
	limited, cancel := awake.WithTimeout(context.Background(), reachLimit)
	defer cancel()
	if d.watch, err = rendezvous.NewWatch(limited, server, key, deadTime(t.Env)); err != nil {
		return d.refuse(err)
	}
	if l, ok := launched(t.Conduit); t.Shared && (!ok || l.Memory == nil) {
		return d.refuse(errs.BadArg("launch: gasrun on this host was built without conduit %q", t.Conduit))
	}
	t.Iface = localIface(t.Iface)
	d.config = t.config()
	d.config.remark = func(line string) { notes = append(notes, []byte(line)) }
	if d.outfit, err = newOutfit(t, key, server, d.config.memory()); err != nil {
		return d.refuse(err)
	}
	notes[0] = []byte(server)
	d.link.send(frameReady, nil, notes...)
	return nil
}

// findDir decides about the ranks' working directory.
func (d *deputy) findDir() (note string, err error) {
	t := &d.task
	why := usableDir(t.Dir)
	if why == nil {
		return "", nil
	}
	if t.DirGiven {
		return "", errs.BadArg("launch: working directory (-wdir): %v", why)
	}
	missing := t.Dir
	if t.Dir, err = os.UserHomeDir(); err == nil {
		err = usableDir(t.Dir)
	}
	if err != nil {
		t.Dir = "/"
	}
	if errors.Is(why, os.ErrNotExist) {
		return fmt.Sprintf("there is no directory %s; its ranks work in %s (-wdir)", missing, t.Dir), nil
	}
	return fmt.Sprintf("%v; its ranks work in %s (-wdir)", why, t.Dir), nil
}

// findProgram makes sure that the program is there as the launcher has it.
func (d *deputy) findProgram() error {
	t := &d.task
	if d.path = t.Path; t.Digest == "" || trusted(t.Path) && digestOf(t.Path) == t.Digest {
		return nil
	}
	if err := d.makeTemp("program"); err != nil {
		return d.refuse(err)
	}
	dir := filepath.Join(d.temp, "program")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return d.refuse(errs.Resource("launch: no room for the program: %v", err))
	}
	d.path = filepath.Join(dir, filepath.Base(t.Path))
	f, err := os.OpenFile(d.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return d.refuse(errs.Resource("launch: no room for the program: %v", err))
	}
	d.link.send(frameWant, nil)
	h := sha256.New()
	var failed error
	for {
		p, err := d.expect(frameProgram)
		if err != nil || !p.has(0, 1) {
			f.Close()
			if err == nil {
				err = errOdd
			}
			return err
		}
		if len(p.texts[0]) == 0 {
			break
		}
		h.Write(p.texts[0])
		if failed == nil { // else go on to the end: the launcher is still sending
			_, failed = f.Write(p.texts[0])
		}
	}
	if err := errors.Join(failed, f.Close()); err != nil {
		return d.refuse(errs.Resource("launch: no room for the program: %v", err))
	}
	if hex.EncodeToString(h.Sum(nil)) != t.Digest {
		return d.refuse(errs.BadArg("launch: the program has changed while it was sent"))
	}
	if err := Runnable(d.path); err != nil {
		return d.refuse(err)
	}
	return nil
}

// makeTemp makes the directory for what.
func (d *deputy) makeTemp(what string) (err error) {
	if d.temp != "" {
		return nil
	}
	if d.temp, err = os.MkdirTemp(d.task.Temp, "gasrun-"); err != nil {
		return errs.Resource("launch: no room for the %s: %v (-tmpdir, TMPDIR)", what, err)
	}
	d.guard.say("dir %s", d.temp)
	return nil
}

// trusted reports whether no user but this one and root can put something else in
// the place of a file, so that a later look finds the same file.
func trusted(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !filepath.IsAbs(real) {
		return false
	}
	for p := real; ; p = filepath.Dir(p) {
		fi, err := os.Lstat(p)
		if err != nil {
			return false
		}
		st, ok := fi.Sys().(*syscall.Stat_t)
		if !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid() {
			return false
		}
		// In a sticky directory only the owner takes a file away.
		if fi.Mode().Perm()&0o022 != 0 && fi.Mode()&os.ModeSticky == 0 {
			return false
		}
		if p == real && (!fi.Mode().IsRegular() || fi.Mode().Perm()&0o111 == 0) {
			return false
		}
		if p == "/" {
			return true
		}
	}
}

// digestOf is the SHA-256 of a file, "" if it cannot be read.
func digestOf(path string) string {
	im, err := openImage(path, path)
	if err != nil {
		return ""
	}
	defer im.close()
	return im.digest
}

// reach finds the address under which this host reaches the rendezvous.
func (d *deputy) reach(key jobkey.Key) (string, error) {
	t := &d.task
	servers := t.Servers
	if len(servers) == 0 {
		return "", errOdd
	}
	if t.SSH { // how ssh came here is how one may come back
		client, _, _ := strings.Cut(os.Getenv("SSH_CONNECTION"), " ")
		_, port, err := net.SplitHostPort(servers[0])
		if a, aerr := netip.ParseAddr(client); err == nil && aerr == nil && a.Zone() == "" {
			servers = append(append(servers[:1:1], net.JoinHostPort(client, port)), servers[1:]...)
		}
	}
	ctx, cancel := awake.WithTimeout(context.Background(), reachLimit)
	defer cancel()
	server, err := rendezvous.Reach(ctx, servers, key)
	if err != nil {
		err = errs.Resource("launch: the launcher's rendezvous cannot be reached from here: %v (in %v; a firewall, or -iface)", err, reachLimit)
	}
	return server, err
}

// localIface is Config.Iface as it holds for this host: an interface's name holds
// everywhere, an address only where it is.
func localIface(iface string) string {
	a, err := netip.ParseAddr(iface)
	if err != nil {
		return iface
	}
	if ifaddr.IsOwn(a) {
		return iface
	}
	return "" // the route to the rendezvous, which has that address, leads the same way
}

// start starts the ranks.
func (d *deputy) start() error {
	t := &d.task
	var in inheritance
	d.outfit.bequeath(&in)
	d.meters = make([][2]*meter, t.Count)
	d.pumps = make([][2]pump, t.Count)
	for i := range d.meters {
		d.meters[i] = [2]*meter{newMeter(), newMeter()}
	}
	if !t.Stdin {
		return d.muster(in, nil)
	}
	if t.StdinHere {
		stdin := os.NewFile(stdinFile, "stdin")
		defer stdin.Close()
		return d.muster(in, stdin)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return errs.Resource("launch: %v", err)
	}
	defer r.Close()
	d.input = newBacklog()
	go d.feed(w)
	if err := d.muster(in, r); err != nil {
		return err
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(int(r.Fd()), &st); err != nil {
		return errs.Resource("launch: %v", err)
	}
	go d.watchThirst(d.crew.members[0].pid, st.Ino)
	return nil
}

// stdinFile is the number of the launcher's standard input in a deputy of the same machine.
const stdinFile = 3

// How often the deputy looks whether rank 0 waits for input: often at the start of a
// program, which is when most read.
const (
	thirstOften  = 10 * time.Millisecond
	thirstSeldom = 200 * time.Millisecond
)

// watchThirst tells the launcher when rank 0, process pid, begins to wait for its input, the
// pipe with that inode, so that the launcher reads no input that no rank has asked for.
func (d *deputy) watchThirst(pid int, inode uint64) {
	for pause := thirstOften; !sys.Awaits(pid, inode); pause = min(pause*11/10, thirstSeldom) {
		select {
		case <-d.link.done:
			return
		case <-time.After(pause):
		}
	}
	d.link.send(frameThirst, nil)
}

// pumpAll sends the output of a rank.
func (d *deputy) pumpAll(rank int, outputs [2]*os.File) error {
	for k, in := range outputs {
		d.pumping.Go(func() { d.pump(rank-d.task.First, k, in) })
	}
	return nil
}

// pump sends one of a rank's outputs.
func (d *deputy) pump(i, k int, in *os.File) {
	rank := int64(d.task.First + i)
	foreign := d.pumps[i][k].run(in, func(b []byte) {
		for len(b) > 0 {
			part := b[:min(len(b), chunk)]
			b = b[len(part):]
			if d.meters[i][k].acquire(len(part)) {
				d.link.send(frameOutput, []int64{rank, int64(k)}, part)
			}
		}
	})
	stranger := int64(0)
	if foreign {
		stranger = 1
	}
	d.link.send(frameOutEnd, []int64{rank, int64(k), stranger})
}

// feed writes what comes from the launcher's standard input to that of rank 0.
func (d *deputy) feed(w *os.File) {
	defer w.Close()
	for {
		p, ok := d.input.get()
		if !ok {
			return
		}
		if _, err := w.Write(p); err != nil { // no process reads it any more
			d.link.send(frameTaken, []int64{-1})
			d.input.close()
			return
		}
		d.link.send(frameTaken, []int64{int64(len(p))})
	}
}

// decides reports whether the launcher has said by f that the job ends.
func (f *frame) decides() bool {
	switch f.kind {
	case frameFail:
		return true
	case frameSignal:
		if len(f.nums) == 0 {
			return false
		}
		switch syscall.Signal(f.nums[0]) {
		case syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGKILL:
			return true
		}
	}
	return false
}

// deadTime is how long a peer of ranks with env in their environment may be silent.
func deadTime(env []string) time.Duration {
	if dead := envDuration(env, jobenv.DeadTime); dead > 0 {
		return dead
	}
	return peerSilence
}

// loop does what the launcher says until it says that this is the end.
//
// A host that is cut off must not go on computing, so the deputy ends its ranks
// without a word from the launcher when nothing has been heard from there for the
// dead time, when the rendezvous is lost, and when the job has failed and the
// launcher has not ended ranks within the dead time. None of this counts while the
// deputy itself does not run, see package awake.
func (d *deputy) loop() error {
	dead := deadTime(d.task.Env)
	silence := awake.NewCount((dead + lostGrace + pulse - 1).Truncate(pulse), pulseAnswer, awake.Now())
	look := time.NewTimer(silence.Next())
	defer look.Stop()
	cleaned := false          // nothing is left but the trace, which has no name any more
	decided := false          // the launcher knows of a failure, or ends the job for another reason
	var verdict *awake.Count  // when it is over the launcher must have decided
	var soon <-chan time.Time // the next look at it
	var why error
	expect := func(limit time.Duration, err error) {
		if verdict == nil && !decided {
			verdict, why = awake.NewCount(limit, pulseAnswer, awake.Now()), err
			soon = time.After(verdict.Next())
		}
	}
	if failed := d.ended(d.crew.reap()); failed != "" {
		expect(dead, errors.New(failed))
	}
	for {
		select {
		case f, ok := <-d.in:
			if !ok && cleaned {
				return nil
			}
			if !ok {
				return errGone
			}
			silence.Restart(awake.Now())
			switch f.kind {
			case frameEnd:
				d.cleanUp()
				if d.trace == nil {
					return nil
				}
				cleaned, decided, soon = true, true, nil // until the launcher has what it wants of the trace
			default:
				if f.decides() {
					decided, soon = true, nil
				}
				if !d.obey(&f) {
					return errOdd
				}
			}
		case <-d.children:
			if failed := d.ended(d.crew.reap()); failed != "" {
				expect(dead, errors.New(failed))
			}
		case err := <-d.watch.Ended():
			if errors.Is(err, rendezvous.ErrJobFailed) {
				expect(dead, err)
			} else {
				expect(lostGrace, err)
			}
		case <-soon:
			if verdict.Look(awake.Now()) {
				return d.wind(why)
			}
			soon = time.After(verdict.Next())
		case s := <-d.signals:
			return fmt.Errorf("ended by %s", sys.SignalName(s.(syscall.Signal)))
		case <-look.C:
			if silence.Look(awake.Now()) && !d.stopped {
				return d.wind(fmt.Errorf("no sign of life from the launcher for %v (%s)%s", silence.Limit(), jobenv.DeadTime, silence.Paused()))
			}
			look.Reset(max(silence.Next(), pulse/20))
		}
	}
}

// call is a frame of a launcher in the same process.
func (d *deputy) call(f *frame) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.kind == frameEnd {
		d.cleanUp()
	} else {
		d.obey(f)
	}
}

// reap looks after children for a launcher in the same process.
func (d *deputy) reap() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended(d.crew.reap())
}

// wind asks the ranks to end, because of err, and returns when they have, or should
// have. The launcher is not told how they ended: it is not they that have failed.
func (d *deputy) wind(err error) error {
	var ranks []int
	for _, m := range d.crew.members {
		ranks = append(ranks, m.rank)
	}
	d.crew.signal(ranks, syscall.SIGTERM, true)
	d.crew.signal(ranks, syscall.SIGCONT, true) // a stopped one could not obey
	grace, stop := awake.NewTimer(windGrace)
	defer stop()
	for d.crew.reap(); d.crew.live > 0; d.crew.reap() {
		select {
		case <-d.children:
		case <-grace:
			return fmt.Errorf("%w: its ranks are killed", err)
		}
	}
	return fmt.Errorf("%w: its ranks have been ended", err)
}

// obey does what one frame says. It is false if that makes no sense.
func (d *deputy) obey(f *frame) bool {
	t := &d.task
	if f.odd(t.First, t.Count) {
		return false
	}
	ranks := func(nums []int64) []int {
		all := make([]int, len(nums))
		for i, n := range nums {
			all[i] = int(n)
		}
		return all
	}
	switch f.kind {
	case frameAlive:
		d.alive(f)
	case frameTrace:
		switch n := f.num(0); {
		case d.trace == nil || n < 0:
			return false
		case n > 0:
			d.traceMeter.give(n)
		default:
			go d.sendTrace()
		}
	case frameSignal:
		if len(f.nums) < 2 || f.nums[0] < 1 || f.nums[0] > 64 {
			return false
		}
		group := f.nums[1] != 0
		d.crew.signal(ranks(f.nums[2:]), syscall.Signal(f.nums[0]), group)
	case frameSuspend:
		d.stopped = true
		d.crew.suspend()
	case frameResume:
		d.stopped = false
		d.crew.resume()
	case frameLook:
		if len(f.nums) == 0 {
			return false
		}
		var nums []int64
		for r, p := range d.crew.look(ranks(f.nums[1:])) {
			if f.nums[0] != 0 {
				p.did, _ = p.activity()
			}
			nums = append(nums, int64(r), int64(p.pid), int64(p.state), int64(p.did.Ran), int64(p.did.Delayed), int64(p.did.Faults))
		}
		d.link.send(frameSeen, nums)
	case frameFail:
		if d.outfit.shared != nil {
			d.outfit.shared.Fail(f.num(0)-t.First, f.num(1), f.text())
		}
	case frameInput:
		if d.input == nil {
			return false
		}
		if len(f.texts[0]) == 0 {
			d.input.close()
		} else {
			d.input.put(f.texts[0])
		}
	case frameCredit:
		if f.nums[2] < 0 {
			return false
		}
		d.meters[f.num(0)-t.First][f.nums[1]].give(f.num(2))
	default:
		return false
	}
	return true
}

// ended tells the launcher which ranks have ended. failed says how one of them has
// failed, "" if none has.
func (d *deputy) ended(all []ending) (failed string) {
	if len(all) == 0 {
		return ""
	}
	var nums []int64
	var causes [][]byte
	for _, e := range all {
		nums = append(nums, int64(e.rank), int64(e.status), int64(e.signal), int64(e.user), int64(e.system), e.maxRSS)
		causes = append(causes, []byte(e.cause))
		if e.cause != "" && failed == "" {
			failed = fmt.Sprintf("rank %d %s, and the launcher does nothing about it", e.rank, e.cause)
		}
	}
	d.link.send(frameEndings, nums, causes...)
	return failed
}

// cleanUp leaves nothing behind and says so.
func (d *deputy) cleanUp() {
	d.stop()
	killed, stuck := d.crew.clean()
	for i := range d.pumps {
		for k := range d.pumps[i] {
			d.pumps[i][k].hurry()
		}
	}
	flushed := make(chan struct{})
	go func() { defer close(flushed); d.pumping.Wait() }()
	for waiting := true; waiting; { // output needs credit
		select {
		case <-flushed:
			waiting = false
		case f, ok := <-d.in:
			if !ok || !d.obey(&f) {
				return
			}
		}
	}
	// The launcher waits for no more than this word: what is still to be done after
	// it may come to nothing, as when it ends ssh.
	d.removeTemp()
	nums := []int64{int64(killed)}
	for _, pid := range stuck {
		nums = append(nums, int64(pid))
	}
	d.link.send(frameBye, nums)
}

// stop ends the ranks that have not ended.
func (d *deputy) stop() {
	d.crew.kill()
	d.crew.drain(d.children)
}

// removeTemp removes what was sent to this host.
func (d *deputy) removeTemp() {
	if d.temp != "" {
		_ = os.RemoveAll(d.temp)
	}
}

// tearDown leaves nothing behind, however it has come to that.
func (d *deputy) tearDown() {
	if d.crew != nil {
		d.stop()
		if !d.crew.swept {
			d.crew.clean()
		}
		d.crew.close()
		dropSubreaper()
		signal.Stop(d.children)
	}
	d.watch.Close()
	d.outfit.close()
	if d.trace != nil {
		d.trace.Close()
	}
	d.removeTemp()
	d.task.Seats.claim.Release()
	d.guard.dismiss()
}

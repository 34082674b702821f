//go:build ofi && cgo

package weathertest

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/ofi"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/lab/netns"
	"github.com/argon-go/argon/internal/testkit/testmain"
	"github.com/argon-go/argon/segment"
)

func init() {
	buildFlags = []string{"-tags", "ofi"}
	roles["cargo"] = cargoRank
}

var (
	flagFabric   = flag.Duration("weather.fabric", 0, "for how long to kill ranks and cut networks of jobs on ofi; 0: a job of each kind of fault")
	flagSeed     = flag.Uint64("weather.seed", 0, "what faults are drawn from; 0: a new one")
	flagJob      = flag.Int("weather.job", -1, "run this job of the seed alone")
	flagProvider = flag.String("weather.provider", "net", "libfabric's provider: net, or tcp;ofi_rxm")
)

const (
	// shortDead is the dead time of jobs that are to fail, longDead of those whose fault heals
	// after absent.
	shortDead = 3 * time.Second
	longDead  = 10 * time.Second
	absent    = 2 * time.Second
	// grace is what ranks are promised to end within beside the dead time, and most the
	// multiple of both after which a test fails, on a machine with any load.
	grace = 5 * time.Second
	most  = 10
	// growth is how many bytes a rank may have more at its end than when it was warm. What a
	// peer that takes nothing costs is bounded by credits: less than 1 MiB.
	growth = 32 << 20
)

// A harm is what happens to a job.
type harm struct {
	kind   string
	victim int // rank that is killed or stopped
	host   int // that is cut off, or one of two that lose each other
	other  int // the other
	ways   int // 1: what comes to host is lost; 2: what goes from it; 3: both
	heals  bool
	early  bool // while the job starts
	polite bool // ranks end when the launcher tells them to, as they do without this test
	slots  int  // ranks of a host
	after  time.Duration
}

// The kinds of harm.
const (
	kills    = "kill"
	stops    = "stop"
	unplugs  = "unplug"
	firewall = "firewall" // between a host and all others
	parts    = "part"     // between two hosts; both reach the rendezvous
)

var harms = []string{kills, stops, unplugs, firewall, parts}

func (h *harm) String() string {
	s := h.kind
	switch h.kind {
	case kills, stops:
		s += fmt.Sprintf(" rank %d", h.victim)
	case unplugs:
		s += fmt.Sprintf(" host %d", h.host)
	case firewall:
		s += fmt.Sprintf(" host %d, %s", h.host, [...]string{1: "input", 2: "output", 3: "both ways"}[h.ways])
	case parts:
		s += fmt.Sprintf(" host %d from %d, %s", h.host, h.other, [...]string{1: "input", 2: "output", 3: "both ways"}[h.ways])
	}
	s += fmt.Sprintf(" after %v", h.after)
	for name, is := range map[string]bool{" that heals": h.heals, " of the start": h.early, ", polite ranks": h.polite} {
		if is {
			s += name
		}
	}
	return s
}

// class is the key by which times are collected.
func (h *harm) class() string {
	switch {
	case h.early:
		return "early " + h.kind
	case h.heals:
		return h.kind + " heals"
	}
	return h.kind
}

// hosts of the network; each harm of a pair leaves one that is well.
const fabricHosts = 3

// draw makes job number k of a seed; kind is "" for any.
func draw(seed uint64, k int, kind string) *harm {
	rnd := rand.New(rand.NewPCG(seed, uint64(k)))
	h := &harm{slots: 1 + rnd.IntN(2), host: rnd.IntN(fabricHosts), ways: 1 + rnd.IntN(3)}
	h.other = (h.host + 1 + rnd.IntN(fabricHosts-1)) % fabricHosts
	h.victim = rnd.IntN(h.slots * fabricHosts)
	h.kind = cmp.Or(kind, harms[rnd.IntN(len(harms))])
	h.after = time.Duration(rnd.IntN(1500)) * time.Millisecond
	h.heals = rnd.IntN(4) == 0 && h.kind != kills
	// A rank that is stopped before it attaches is waited for, as long as its process lives.
	h.early = rnd.IntN(6) == 0 && kind == "" && !h.heals && h.kind != stops
	h.polite = rnd.IntN(4) == 0 && !h.heals
	return h
}

// cut reports whether a rank's host is cut off from all others: its deputy kills it then.
func (h *harm) cut(rank int) bool {
	return (h.kind == unplugs || h.kind == firewall) && rank/h.slots == h.host
}

// blamed reports whether rank may say that rank named has failed.
func (h *harm) blamed(named, rank int) bool {
	switch h.kind {
	case kills, stops:
		return named == h.victim
	case parts:
		return named/h.slots == h.host || named/h.slots == h.other
	}
	// A host to which nothing comes can say, before others know, that they are silent.
	return h.cut(named) || h.cut(rank) || h.ways == 1 && h.kind == firewall
}

// do does it, and returns what undoes it.
func (h *harm) do(t *testing.T, n *netns.Net, pid int) (undo func()) {
	t.Helper()
	at := n.Hosts[h.host]
	switch h.kind {
	case kills:
		_ = syscall.Kill(pid, syscall.SIGKILL)
		return func() {}
	case stops:
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		return func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	case unplugs:
		at.Unplug()
		return at.Plug
	}
	rules := "table inet storm {"
	for i, c := range []struct{ hook, dir, addr string }{{"input", "iifname", "saddr"}, {"output", "oifname", "daddr"}} {
		if h.ways>>i&1 == 0 {
			continue
		}
		match := fmt.Sprintf("%s eth0", c.dir)
		if h.kind == parts {
			match += fmt.Sprintf(" ip %s %s", c.addr, n.Hosts[h.other].IPv4)
		}
		rules += fmt.Sprintf(" chain c%d { type filter hook %s priority 0; %s drop; };", i, c.hook, match)
	}
	nft(t, at, rules+" }")
	return func() { nft(t, at, "delete table inet storm") }
}

// nft runs the program nft on a host.
func nft(t *testing.T, h *netns.Host, rules string) {
	t.Helper()
	if out, err := h.Command(context.WithoutCancel(t.Context()), "nft", rules).CombinedOutput(); err != nil {
		t.Fatalf("nft %s: %v: %s", rules, err, out)
	}
}

// What ranks print.
var (
	beganLine = regexp.MustCompile(`(?m)^rank (\d+) pid (\d+) began$`)
	worksLine = regexp.MustCompile(`(?m)^rank (\d+) works$`)
	endedLine = regexp.MustCompile(`(?m)^rank (\d+) ended (\d+) rss (\d+) (\d+) rounds (\d+): (.*)$`)
	wellLine  = regexp.MustCompile(`(?m)^rank (\d+) is well$`)
	namedRank = regexp.MustCompile(`rank (\d+) failed|given up this rank, (\d+)`)
)

// A tally has the results of one job.
type tally struct {
	class string
	ends  []time.Duration // of ranks, after the harm
	whole time.Duration   // until nothing was left
	warm  int64           // most bytes of a rank that was warm; 0: none was
	went  bool            // the job went on
}

// weather runs a job and harms it.
func weather(t *testing.T, n *netns.Net, h *harm) (y tally) {
	t.Helper()
	y.class = h.class()
	dead := shortDead
	if h.heals {
		dead = longDead
	}
	if h.kind == firewall || h.kind == parts {
		if _, err := exec.LookPath("nft"); err != nil {
			t.Skipf("firewalls need nft: %v", err)
		}
	}
	temp, stop := t.TempDir(), filepath.Join(t.TempDir(), "stop")
	shm := names("/dev/shm")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"-hosts", list(n, h.slots, false), "-conduit", "ofi", "-provider", *flagProvider, "-tmpdir", temp, "-timeout", "4m",
		"-x", envRole + "=cargo", "-x", envStop + "=" + stop, "-x", jobenv.DeadTime + "=" + dead.String(), "-x", jobenv.JoinTimeout + "=2m",
		"-x", "FI_OFI_RXM_BUFFER_SIZE=1024", "-x", "TMPDIR=" + temp,
	}
	if !h.polite {
		args = append(args, "-x", envDeaf+"=1", "-kill-grace", "3m")
	}
	size := h.slots * fabricHosts
	r := gasrun(t, n, n.Switch, append(args, self)...)
	count := func(line *regexp.Regexp) int { return len(line.FindAllString(r.out.String(), -1)) }
	said := func() string { return r.out.String() + r.err.String() }
	start := worksLine
	if h.early {
		start = beganLine
	}
	wait(t, func() bool { return count(start) == size || r.over() }, said)
	if r.over() {
		t.Errorf("%v: status %d before the fault\n%s", h, r.wait(), said())
		return y
	}
	pid := 0
	for _, l := range beganLine.FindAllStringSubmatch(r.out.String(), -1) {
		if l[1] == strconv.Itoa(h.victim) {
			pid, _ = strconv.Atoi(l[2])
		}
	}
	if pid <= 0 { // which are names of groups of processes, this one's among them
		t.Errorf("%v: rank %d has not said which process it is\n%s", h, h.victim, said())
		_ = r.Cancel()
		r.wait()
		return y
	}
	time.Sleep(h.after) // a moment that nothing else decides
	began := time.Now()
	undo := h.do(t, n, pid)
	undone := h.kind == kills
	heal := func() {
		if !undone {
			undone = true
			undo()
		}
	}
	defer heal()
	if h.heals {
		time.Sleep(absent) // how long it lasts
		heal()
		if err := os.WriteFile(stop, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	others := size
	if h.kind == kills || h.kind == stops && !h.heals {
		others-- // one that is stopped cannot know, and goes on then
	}
	wait(t, func() bool { return r.over() || count(endedLine)+count(wellLine) >= others }, said)
	heal()
	status := r.wait()
	for _, host := range append([]*netns.Host{n.Switch}, n.Hosts...) {
		wait(t, func() bool { return len(host.Processes()) == 0 }, func() string {
			return fmt.Sprintf("%v: processes %v are left on %s\n%s", h, host.Processes(), host.Short, said())
		})
	}
	y.whole = time.Since(began)

	if status == jobenv.StatusTimeout || status == 0 && !h.heals {
		t.Errorf("%v: status %d", h, status)
	}
	if h.kind == kills && status != 128+9 {
		t.Errorf("%v: status %d, want %d", h, status, 128+9)
	}
	ended := map[int]bool{}
	for _, l := range endedLine.FindAllStringSubmatch(r.out.String(), -1) {
		rank, _ := strconv.Atoi(l[1])
		at, _ := strconv.ParseInt(l[2], 10, 64)
		warm, _ := strconv.ParseInt(l[3], 10, 64)
		last, _ := strconv.ParseInt(l[4], 10, 64)
		ended[rank] = true
		took := time.Duration(at - began.UnixNano())
		if rank != h.victim || h.kind != stops {
			y.ends = append(y.ends, took)
			if took > most*(dead+grace) {
				t.Errorf("%v: rank %d has ended after %v", h, rank, took)
			}
		}
		y.warm = max(y.warm, warm)
		if warm > 0 && last > warm+growth {
			t.Errorf("%v: rank %d has grown from %d bytes to %d", h, rank, warm, last)
		}
		if h.early {
			continue // it may not have known of a job yet
		}
		if m := namedRank.FindStringSubmatch(l[6]); m == nil {
			t.Errorf("%v: rank %d ended, and names none: %s", h, rank, l[6])
		} else if named, _ := strconv.Atoi(m[1] + m[2]); !h.blamed(named, rank) {
			t.Errorf("%v: rank %d blames rank %d: %s", h, rank, named, l[6])
		}
	}
	for rank := range size {
		if !h.heals && !h.early && !h.polite && !ended[rank] && !(h.kind == kills && rank == h.victim) && !h.cut(rank) {
			t.Errorf("%v: rank %d has not said how it ended", h, rank)
		}
	}
	if wrong := strings.Contains(said(), "WRONG"); wrong || h.heals && status == 0 && count(wellLine) != size {
		t.Errorf("%v: data are wrong, or ranks have not said that they are right", h)
	}
	y.went = status == 0
	wait(t, func() bool { return len(names(temp)) == 0 && len(without(names("/dev/shm"), shm)) == 0 }, func() string {
		return fmt.Sprintf("%v: left in the folder for temporary files %v, in /dev/shm %v", h, names(temp), without(names("/dev/shm"), shm))
	})
	if t.Failed() || testing.Verbose() && *flagFabric == 0 {
		t.Logf("%v: ranks ended after %v, all after %v; status %d\n%s", h, y.ends, y.whole, status, said())
	}
	return y
}

// names lists a folder.
func names(dir string) (l []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		l = append(l, e.Name())
	}
	return l
}

// without is what l has beside before.
func without(l, before []string) []string {
	return slices.DeleteFunc(l, func(s string) bool { return slices.Contains(before, s) || strings.HasPrefix(s, "argon-locked-") }) // which stays, for all jobs
}

// TestFabric harms jobs on conduit ofi, on hosts that are network namespaces: ranks are
// killed and stopped, cables are pulled, firewalls drop what comes, what goes, or both. All
// ranks end with an error that names a rank of which that is true, long before this test
// loses patience; how long after the fault is reported. Where the fault heals in less than the
// dead time the job goes on, or ends so; no data are wrong. Nothing is left, and no rank
// grows.
//
//	go test -tags ofi ./internal/lab/weathertest -run TestFabric -weather.fabric 1h -timeout 0 -v
//
// The seed is printed; with it, -weather.job runs one of its jobs again.
func TestFabric(t *testing.T) {
	testmain.Long(t)
	if testing.Short() {
		t.Skip("builds programs, and waits for dead times")
	}
	seed := *flagSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-weather.provider '%s' -weather.seed %d", *flagProvider, seed)
	// A network for some jobs each, so that what making one leaves behind shows.
	const each = 20
	var all []tally
	some := func(first, count int, kind func(k int) string, until time.Time) {
		t.Run(fmt.Sprintf("from %d", first), func(t *testing.T) {
			n := netns.New(t, fabricHosts)
			for k := first; k < first+count && (until.IsZero() || time.Now().Before(until)); k++ {
				h := draw(seed, k, kind(k))
				t.Run(fmt.Sprint(k), func(t *testing.T) {
					t.Logf("-weather.seed %d -weather.job %d: %v", seed, k, h)
					all = append(all, weather(t, n, h))
				})
			}
		})
	}
	anyKind := func(int) string { return "" }
	switch {
	case *flagJob >= 0:
		some(*flagJob, 1, anyKind, time.Time{})
	case *flagFabric > 0:
		end := time.Now().Add(*flagFabric)
		for first := 0; time.Now().Before(end); first += each {
			some(first, each, anyKind, end)
		}
	default:
		some(0, len(harms), func(k int) string { return harms[k] }, time.Time{})
	}
	if slices.ContainsFunc(names("/run/netns"), func(s string) bool { return strings.HasPrefix(s, fmt.Sprintf("argonnet-%d-", os.Getpid())) }) {
		t.Error("network namespaces are left")
	}
	report(t, all)
}

// someHealed is of how many jobs whose fault heals one has to go on at least. Which do is
// reported, but of a single one either is right.
const someHealed = 5

// report says how long ranks took to end, and fails the test if ranks of later jobs
// are larger than those of earlier ones.
func report(t *testing.T, all []tally) {
	byClass := map[string][]tally{}
	for _, y := range all {
		byClass[y.class] = append(byClass[y.class], y)
	}
	classes := make([]string, 0, len(byClass))
	for c := range byClass {
		classes = append(classes, c)
	}
	slices.Sort(classes)
	for _, c := range classes {
		var ends []time.Duration
		went, late := 0, 0
		var whole time.Duration
		bound := shortDead + grace
		if strings.HasSuffix(c, "heals") {
			bound = longDead + grace
		}
		for _, y := range byClass[c] {
			ends = append(ends, y.ends...)
			whole = max(whole, y.whole)
			if y.went {
				went++
			}
		}
		slices.Sort(ends)
		for _, d := range ends {
			if d > bound {
				late++
			}
		}
		text := "no rank ended with an error"
		if k := len(ends); k > 0 {
			text = fmt.Sprintf("%d ranks ended after %.2f s (median), %.2f (nine tenths), %.2f (all), %d of them after more than %v",
				k, ends[k/2].Seconds(), ends[k*9/10].Seconds(), ends[k-1].Seconds(), late, bound)
		}
		t.Logf("%-16s %3d jobs, %d went on; nothing was left after %.2f s; %s", c, len(byClass[c]), went, whole.Seconds(), text)
	}
	healed, went := 0, 0
	for _, y := range all {
		if strings.HasSuffix(y.class, "heals") {
			if healed++; y.went {
				went++
			}
		}
	}
	if healed >= someHealed && went == 0 {
		t.Errorf("none of %d jobs whose fault healed went on", healed)
	}
	var warm []int64
	for _, y := range all {
		if y.warm > 0 {
			warm = append(warm, y.warm)
		}
	}
	if k := len(warm); k >= 8 {
		first, last := slices.Clone(warm[:k/4]), slices.Clone(warm[k-k/4:])
		slices.Sort(first)
		slices.Sort(last)
		a, b := first[len(first)/2], last[len(last)/2]
		t.Logf("a rank has %.1f MB in the first jobs and %.1f MB in the last", float64(a)/1e6, float64(b)/1e6)
		if b > a+a/4 {
			t.Errorf("a rank has %d bytes in the first jobs and %d in the last", a, b)
		}
	}
}

// envDeaf has a rank ignore SIGTERM, by which the launcher ends those that survive another
// one, until it has found out by itself.
const envDeaf = "ARGONTEST_WEATHER_DEAF"

// A cargo is a rank that moves data and looks whether they are right.
type cargo struct {
	conduits.Endpoint
	heard  []once // by source
	wanted map[uint64]func(value uint64)
	failed error
	wrong  string
	last   uint32 // the round in which rank 0 stops
	over   int    // ranks that have said so
}

// The tags of messages: of a round, with a payload made from it, or none.
const (
	tagRound conduits.Tag = iota + 1
	tagStop
	tagOver
)

// Where a rank's segment has what each other one writes: a word that is added to, one that
// is put, and a block.
const (
	cargoStride = 128 << 10
	cargoWord   = 64
	cargoBlock  = 64 << 10
	// blockEvery rounds a block is moved, and warmRounds after which a rank has all that it needs.
	blockEvery, warmRounds = 4, 16
)

func (c *cargo) Receive(m *conduits.Message) {
	switch m.Tag {
	case tagStop:
		c.last = m.Words[0]
	case tagOver:
		c.over++
	case tagRound:
		want := byte(m.Words[0]) ^ byte(m.Src)
		for _, b := range m.Payload {
			if b != want {
				c.wrong = fmt.Sprintf("a payload of rank %d in round %d", m.Src, m.Words[0])
			}
		}
		if !c.heard[m.Src].add(m.Words[0]) {
			c.wrong = fmt.Sprintf("message %d of rank %d came twice", m.Words[0], m.Src)
		}
	}
}

func (c *cargo) Complete(cookie uint64, ev conduits.Event, value uint64, err error) {
	if ev&conduits.RemoteDone == 0 {
		return
	}
	f := c.wanted[cookie]
	switch {
	case f == nil:
		c.wrong = fmt.Sprintf("operation %#x ended twice", cookie)
	case err == nil:
		delete(c.wanted, cookie)
		f(value)
	default:
		delete(c.wanted, cookie)
		c.failed = err
	}
}

// post sends a message when there is credit.
func (c *cargo) post(dst int, tag conduits.Tag, word uint32, payload []byte) error {
	for {
		switch c.SendPayload(dst, conduits.Request, tag, []uint32{word}, payload, 0) {
		case conduits.Ready:
			return nil
		case conduits.Dead:
			return cmp.Or(c.Err(), fmt.Errorf("rank %d is dead", dst))
		}
		c.Poll()
		if err := c.Err(); err != nil {
			return err
		}
	}
}

// await waits until all operations are done.
func (c *cargo) await() error {
	err := conduits.Wait(c, nil, func() bool { return len(c.wanted) == 0 || c.failed != nil })
	return cmp.Or(err, c.failed)
}

// round is one of the rank's: each other rank is sent a message, a word there is added to, and
// words, now and then blocks, are put there and got back.
func (c *cargo) round(i uint32, put, got []byte) error {
	me := c.Rank()
	size := 8
	if i%blockEvery == 0 {
		size = cargoBlock
	}
	value := func(to, k int) byte { return byte(i) + byte(k*7) + byte(to<<4) + byte(me) }
	for d := 1; d < c.Size(); d++ {
		to := (me + d) % c.Size()
		base := segment.AttachBase + segment.NLA(me*cargoStride)
		payload := put[:0]
		for range i % 300 {
			payload = append(payload, byte(i)^byte(me))
		}
		if err := c.post(to, tagRound, i, payload); err != nil {
			return err
		}
		cookie := uint64(i)<<32 | uint64(to)<<8
		added := func(old uint64) {
			if old != uint64(i) {
				c.wrong = fmt.Sprintf("the word at rank %d was %d in round %d", to, old, i)
			}
		}
		c.wanted[cookie] = added
		old, ev, err := post.Atomic(c, to, base, conduits.AtomicAdd, conduits.Uint64, 1, 0, cookie)
		if err != nil {
			return err
		}
		if ev&conduits.RemoteDone != 0 {
			delete(c.wanted, cookie)
			added(old)
		}
		place := base + cargoWord
		if size == cargoBlock {
			place = base + cargoBlock
		}
		for k := range put[:size] {
			put[k] = value(to, k)
		}
		c.wanted[cookie|1] = func(uint64) {}
		if ev, err = post.Put(c, to, place, put[:size], conduits.RemoteDone, cookie|1); err != nil {
			return err
		} else if ev&conduits.RemoteDone != 0 {
			delete(c.wanted, cookie|1)
		}
		if err := c.await(); err != nil {
			return err
		}
		clear(got[:size])
		c.wanted[cookie|2] = func(uint64) {}
		if ev, err = post.Get(c, got[:size], to, place, conduits.RemoteDone, cookie|2); err != nil {
			return err
		} else if ev&conduits.RemoteDone != 0 {
			delete(c.wanted, cookie|2)
		}
		if err := c.await(); err != nil {
			return err
		}
		for k, b := range got[:size] {
			if b != value(to, k) {
				return fmt.Errorf("WRONG: byte %d of %d got back from rank %d in round %d is %d, not %d", k, size, to, i, b, value(to, k))
			}
		}
	}
	if c.wrong != "" {
		return errors.New("WRONG: " + c.wrong)
	}
	return nil
}

// resident is how many bytes of memory this process has.
func resident() int64 {
	b, _ := os.ReadFile("/proc/self/statm")
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// cargoRank is a rank of a job that is harmed. It says how it ends.
func cargoRank() {
	if os.Getenv(envDeaf) != "" {
		signal.Ignore(syscall.SIGTERM)
	}
	fmt.Printf("rank %s pid %d began\n", os.Getenv(jobenv.Rank), os.Getpid())
	c := &cargo{wanted: map[uint64]func(uint64){}, last: ^uint32(0)}
	warm, i := int64(0), uint32(0)
	check := func(err error) {
		if err == nil {
			return
		}
		text := strings.ReplaceAll(err.Error(), "\n", "; ")
		if !errors.Is(err, conduits.ErrPeer) {
			text = "no failure of a rank: " + text
		}
		fmt.Printf("rank %s ended %d rss %d %d rounds %d: %s\n", os.Getenv(jobenv.Rank), time.Now().UnixNano(), warm, resident(), i, text)
		if c.Endpoint != nil {
			if c.Err() == nil && strings.Contains(text, "WRONG") {
				c.Fail(err)
			}
			_ = c.Close()
		}
		if errors.Is(err, conduits.ErrPeer) {
			os.Exit(jobenv.StatusPeerFailed)
		}
		os.Exit(1)
	}
	job, _, err := conduits.Launched(os.Getenv)
	check(err)
	conduit, err := conduits.Lookup(job.Env(jobenv.Conduit))
	check(err)
	ep, err := conduit.Join(job, conduits.Config{})
	check(err)
	c.Endpoint, c.heard = ep, make([]once, job.Size)
	put, got := make([]byte, cargoBlock), make([]byte, cargoBlock)
	check(c.Attach(conduits.AttachConfig{Size: uint64(job.Size) * cargoStride, Rights: segment.RightsAll, Receiver: c}))
	for ; i < c.last; i++ {
		check(c.round(i, put, got))
		switch i {
		case 0:
			fmt.Printf("rank %d works\n", job.Rank)
		case warmRounds:
			warm = resident()
		}
		if _, err := os.Stat(os.Getenv(envStop)); err == nil && job.Rank == 0 && c.last == ^uint32(0) {
			// Others may be ahead, by no more than they have credit for: they stop when they hear of it.
			for d := 1; d < job.Size; d++ {
				check(c.post(d, tagStop, i, nil))
			}
			c.last = 0
		}
	}
	for d := 1; d < job.Size; d++ {
		check(c.post((job.Rank+d)%job.Size, tagOver, i, nil))
	}
	check(conduits.Wait(c, nil, func() bool { return c.over == job.Size-1 }))
	if c.wrong != "" {
		check(errors.New("WRONG: " + c.wrong))
	}
	check(c.Close())
	fmt.Printf("rank %d is well\n", job.Rank)
}

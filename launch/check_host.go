package launch

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/argon-go/argon/conduits/ofi/providers"
	"github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/sys"
)

// Levels of findings: what is as it should be, what jobs run with all the same, and what
// they do not run with.
const (
	levelOK   = "ok"
	levelNote = "note"
	levelFail = "FAIL"
)

// A finding is a line of gasrun -check.
type finding struct{ Level, Topic, Text string }

// How far a rank has got. Each is printed as it is reached, so that what is known of the others is told
// when one does not go on.
const (
	stageNone    = iota
	stageStarted // and joins
	stageLooked  // and waits for the others, host 0 for all of them
	stageBegun   // and sends
	stageSent    // and waits again
	stageOver
)

// A report is what a rank prints. What the first rank of a host has found out is in the one of
// stageLooked, without datagrams, and in that of stageOver.
type report struct {
	Rank     int
	Stage    int
	Findings []finding
	Addr     netip.Addr     // that its datagrams come from
	MTU      string         // such as "eth0 has 1500"
	Sizes    []int          // of the datagrams that the host sends, ascending
	Least    int            // the size that every path has to carry
	Datagram bool           // ARGON_DATAGRAM is set
	Heard    map[int][]int  // sizes that have come, by host
	Refused  map[int]string // why the system sends nothing to a host
	// Clock is how much the clock of a host is ahead, and by how much that may be wrong.
	Clock map[int][2]time.Duration
}

// Of datagrams between two hosts, those of each size are sent so often at most, so far apart,
// until one has been answered. They wait in the socket of their receiver, and all are read that are there
// in the end, so that a process which is given no processor loses none that its socket has room for.
const (
	checkRounds = 10
	checkEvery  = 100 * time.Millisecond
	// checkMates is with how many of the hosts before and behind it, in a ring, a host exchanges datagrams.
	checkMates = 32
	// checkJumbo is what networks with jumbo frames carry: packets of 9000 bytes, less headers of IPv6.
	checkJumbo = 8952
)

// A datagram of a check is the job's token, which only its ranks know; the sender's host and
// the receiver's (4 bytes each); the size that is tried (4); when the one was sent, by its
// sender's clock, that this is or answers (8); and of an answer when it was given (8), else 0.
const checkHeader = 16 + 4 + 4 + 4 + 8 + 8

// checker is a host's part of the exchange.
type checker struct {
	conn  *net.UDPConn
	token []byte
	host  int
	addrs []netip.AddrPort // of all hosts

	mu       sync.Mutex
	r        *report
	answered map[[2]int]bool       // host, size
	trips    map[int]time.Duration // the shortest so far
}

// checkRank is what gasrun does as one of the two ranks of a host that is checked. The second
// one has its memory read.
func checkRank() error {
	rank, err1 := strconv.Atoi(os.Getenv(jobenv.Rank))
	size, err2 := strconv.Atoi(os.Getenv(jobenv.Size))
	setup, err3 := rendezvous.FromEnv(os.Getenv)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	conn, addr, err := udp.Socket(os.Getenv)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := tell(report{Rank: rank, Stage: stageStarted}); err != nil {
		return err
	}
	client, err := setup.Join(context.Background(), rendezvous.Hello{
		Rank: rank, Size: size, Host: os.Getenv(jobenv.Host), Addr: addr,
		Port: conn.LocalAddr().(*net.UDPAddr).AddrPort().Port(), Incarnation: uint64(time.Now().UnixNano()), Agree: "gasrun -check 1",
	}, rendezvous.Events{})
	if err != nil {
		return err
	}
	defer client.Close()
	if rank%2 != 0 {
		err = showMemory(client, rank)
	} else {
		err = checkHost(client, conn, setup.Key, rank/2, size/2)
	}
	if err != nil {
		client.Fail(rank, jobenv.StatusFailed, err.Error())
		return err
	}
	return client.Leave()
}

// showMemory has the other rank of the host read memory of this process: the header of its
// executable, which is mapped first.
func showMemory(client *rendezvous.Client, rank int) error {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	start, _, _ := strings.Cut(string(maps), "-")
	if err := client.Put(fmt.Sprint("memory/", rank/2), fmt.Appendf(nil, "%d %s", os.Getpid(), start)); err != nil {
		return err
	}
	if _, err = client.Get(context.Background(), "over"); err != nil {
		return err
	}
	return tell(report{Rank: rank, Stage: stageOver})
}

// tell prints a report.
func tell(r report) error {
	text, err := json.Marshal(r)
	if err == nil {
		_, err = fmt.Println(string(text))
	}
	return err
}

// checkHost looks at this host, exchanges datagrams with others, and prints its report.
func checkHost(client *rendezvous.Client, conn *net.UDPConn, key jobkey.Key, host, hosts int) error {
	instance := client.Instance()
	token := key.ForJob(instance[:]).Seed("check")
	own := client.Addr(2 * host).Addr()
	r := &report{Rank: 2 * host, Stage: stageLooked, Addr: own, MTU: udp.MTU(own), Heard: map[int][]int{}, Refused: map[int]string{}, Clock: map[int][2]time.Duration{}}
	if r.Least = 1200; own.Is4() {
		r.Least = 548 // RFC 791, 3.2
	}
	r.Sizes = []int{checkHeader, r.Least, 1200, engine.DefaultDatagram, checkJumbo}
	if n, err := strconv.Atoi(os.Getenv(udp.EnvDatagram)); err == nil {
		r.Sizes = slices.DeleteFunc(append(r.Sizes, n), func(s int) bool { return s > n })
		r.Least, r.Datagram = min(r.Least, n), true
	}
	slices.Sort(r.Sizes)
	r.Sizes = slices.Compact(r.Sizes)
	memory, err := client.Get(context.Background(), fmt.Sprint("memory/", host))
	if err != nil {
		return err
	}
	r.Findings = append(lookAround(), readable(string(memory)), room(conn))
	c := &checker{conn: conn, token: token[:16], host: host, r: r, answered: map[[2]int]bool{}, trips: map[int]time.Duration{}}
	for h := range hosts {
		c.addrs = append(c.addrs, client.Addr(2*h))
	}
	looked := *r
	read := make(chan error, 1)
	go func() { read <- c.read() }()
	if err := meet(client, host, hosts, "begin", looked); err != nil {
		return err
	}
	if err := tell(report{Rank: r.Rank, Stage: stageBegun}); err != nil {
		return err
	}
	c.send()
	if err := meet(client, host, hosts, "over", report{Rank: r.Rank, Stage: stageSent}); err != nil {
		return err
	}
	// What the others have sent has been sent by now.
	if err := conn.SetReadDeadline(time.Now().Add(2 * checkEvery)); err != nil {
		return err
	}
	if err := <-read; err != nil {
		return err
	}
	r.Stage = stageOver
	return tell(*r)
}

// meet returns when all hosts have called it for that event. First it prints r, which what others send
// once all have may change.
func meet(client *rendezvous.Client, host, hosts int, event string, r report) error {
	if err := tell(r); err != nil {
		return err
	}
	if err := client.Put(fmt.Sprint(event, "/", host), nil); err != nil {
		return err
	}
	for h := 0; host == 0 && h < hosts; h++ {
		if _, err := client.Get(context.Background(), fmt.Sprint(event, "/", h)); err != nil {
			return err
		}
	}
	if host == 0 {
		return client.Put(event, nil)
	}
	_, err := client.Get(context.Background(), event)
	return err
}

// mates lists the hosts that one exchanges datagrams with.
func mates(host, hosts int) (all []int) {
	for h := range hosts {
		if d := (h - host + hosts) % hosts; d > 0 && (d <= checkMates || hosts-d <= checkMates) {
			all = append(all, h)
		}
	}
	return all
}

// send sends datagrams of all sizes to all mates until they have been answered.
func (c *checker) send() {
	for i := range checkRounds {
		if i > 0 {
			time.Sleep(checkEvery)
		}
		left := false
		for _, to := range mates(c.host, len(c.addrs)) {
			for _, size := range c.r.Sizes {
				c.mu.Lock()
				done := c.answered[[2]int{to, size}]
				c.mu.Unlock()
				if !done {
					left = true
					c.datagram(to, size, size, time.Now().UnixNano(), 0)
				}
			}
		}
		if !left {
			return
		}
	}
}

// datagram sends one of length bytes about a size. One that is longer than what the interface
// takes is as good as lost.
func (c *checker) datagram(to, length, size int, sent, answered int64) {
	b := append(make([]byte, 0, length), c.token...)
	for _, v := range [...]int{c.host, to, size} {
		b = binary.BigEndian.AppendUint32(b, uint32(v))
	}
	b = binary.BigEndian.AppendUint64(b, uint64(sent))
	b = binary.BigEndian.AppendUint64(b, uint64(answered))
	_, err := c.conn.WriteToUDPAddrPort(b[:length], c.addrs[to])
	var errno syscall.Errno
	if errors.As(err, &errno) && errno != syscall.EMSGSIZE {
		c.mu.Lock()
		c.r.Refused[to] = fmt.Sprintf("%v (%s)", errno, sys.ErrnoName(errno))
		c.mu.Unlock()
	}
}

// read takes datagrams until the socket's deadline, and then those that the socket has.
func (c *checker) read() error {
	b := make([]byte, 1<<16)
	for {
		n, _, err := c.conn.ReadFromUDPAddrPort(b)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return c.drain(b)
		case errors.Is(err, net.ErrClosed):
			return err
		case err == nil: // else what a router has said of one that was sent
			c.handle(b[:n], time.Now().UnixNano())
		}
	}
}

// mostDrained bounds what drain reads while a stranger goes on sending.
const mostDrained = 1 << 16

// drain takes the datagrams that the socket has. Package net reads none after the deadline, though there are
// some if this process was given no processor before it.
func (c *checker) drain(b []byte) error {
	if err := c.conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return err
	}
	for range mostDrained {
		var n int
		var got error
		if err := raw.Read(func(fd uintptr) bool {
			n, got = syscall.Read(int(fd), b) // does not wait: the sockets of package net never do
			return true
		}); err != nil {
			return err
		}
		switch got {
		case nil:
			c.handle(b[:n], time.Now().UnixNano())
		case syscall.EAGAIN:
			return nil
		}
	}
	return nil
}

// handle answers a datagram, or notes what is answered.
func (c *checker) handle(b []byte, now int64) {
	if len(b) < checkHeader || !bytes.Equal(b[:16], c.token) {
		return
	}
	number := func(at int) int { return int(binary.BigEndian.Uint32(b[at:])) }
	from, to, size := number(16), number(20), number(24)
	sent, answered := int64(binary.BigEndian.Uint64(b[28:])), int64(binary.BigEndian.Uint64(b[36:]))
	if to != c.host || from >= len(c.addrs) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered == 0 {
		if len(b) == size && !slices.Contains(c.r.Heard[from], size) {
			c.r.Heard[from] = append(c.r.Heard[from], size)
		}
		c.mu.Unlock()
		c.datagram(from, checkHeader, size, sent, now)
		c.mu.Lock()
		return
	}
	c.answered[[2]int{from, size}] = true
	if trip := time.Duration(now - sent); c.trips[from] == 0 || trip < c.trips[from] {
		c.trips[from], c.r.Clock[from] = trip, [2]time.Duration{time.Duration(answered - sent - (now-sent)/2), trip / 2}
	}
}

// What jobs of some ranks may need of a host's limits.
const (
	fewFiles  = 1024
	fewTasks  = 1024
	fewMemory = 1 << 30
	askedRoom = 4 << 20 // that a socket of conduit udp asks for
)

// lookAround looks at what the system gives the processes of this host.
func lookAround() (all []finding) {
	add := func(level, topic, format string, args ...any) {
		all = append(all, finding{level, topic, fmt.Sprintf(format, args...)})
	}
	// room adds what a limit leaves.
	room := func(topic string, r sys.Room, few int64, without string) {
		switch {
		case !r.Bounded():
			add(levelOK, topic, "no limit")
		case r.Free < few:
			add(levelNote, topic, "%v: %s", r, without)
		default:
			r.Knob = ""
			add(levelOK, topic, "%v", r)
		}
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	add(levelOK, topicVersions, "Linux %s, %s, %s", bytes.TrimSpace(kernel), runtime.GOARCH, buildOf())
	if err := sys.StartError(); err != nil {
		add(levelFail, "start", "%v", err)
	}
	if quota, all := sys.QuotaCPU(), sys.NumCPU(); quota < all {
		add(levelNote, "processors", "%d, of which the control group has time for %d: that many ranks compute at once (docker run --cpus, Kubernetes' resources.limits.cpu, systemd's CPUQuota)", all, quota)
	} else {
		add(levelOK, "processors", "%d", all)
	}
	room("memory", sys.MemoryRoom(true), fewMemory, "choose smaller segments (-segment)")
	room("open files", sys.FilesRoom(), fewFiles, "jobs of many ranks need more")
	room("processes", sys.TaskRoom(), fewTasks, "each rank has some ten threads and more")
	switch limit := sys.LockLimit(); {
	case sys.LocksBeyondLimit() || limit > 1<<62:
		add(levelOK, "locked memory", "no limit")
	case limit < 512<<20:
		add(levelNote, "locked memory", "%s a process: -segment-large needs more, or a smaller -pinnable (ulimit -l unlimited, memlock in /etc/security/limits.conf)", sys.Amount(int64(limit)))
	default:
		add(levelOK, "locked memory", "%s a process", sys.Amount(int64(limit)))
	}
	dir := os.Getenv(jobenv.ShmDir)
	use := "which " + jobenv.ShmDir + " names"
	if dir == "" {
		dir, use = "/dev/shm", "used where memfd_create is forbidden"
	}
	if r, err := sys.DirectoryRoom(dir); err != nil && os.Getenv(jobenv.ShmDir) != "" {
		add(levelFail, "shared memory", "%s, %s: %v", dir, use, err)
	} else if err != nil {
		add(levelOK, "shared memory", "in files without a name; there is no %s", dir)
	} else {
		add(levelOK, "shared memory", "%s, %s: %s", dir, use, freeOf(r))
	}
	anonymous, shared := chosen("enabled"), chosen("shmem_enabled")
	add(levelOK, "huge pages", "%s for a rank's own memory, %s for shared memory (/sys/kernel/mm/transparent_hugepage)", anonymous, shared)
	if err := sys.MembarrierError(); err != nil {
		add(levelNote, "membarrier", "%v: messages in shared memory cost a fence each; a seccomp filter that allows membarrier(2) mends it", err)
	}
	if providers.Built {
		all = append(all, fabrics())
	}
	return all
}

// buildOf names this build of gasrun.
func buildOf() string {
	text := runtime.Version()
	if b, ok := debug.ReadBuildInfo(); ok {
		text += ", gasrun " + b.Main.Version
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" && !strings.Contains(text, s.Value[:min(12, len(s.Value))]) {
				text += " " + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return text
}

// freeOf is how much is left of a file system.
func freeOf(r sys.Room) string {
	if !r.Bounded() {
		return "no limit"
	}
	return fmt.Sprintf("%s, of which %s are free", sys.Amount(r.Limit), sys.Amount(r.Free))
}

// chosen is the word in brackets of a file of /sys/kernel/mm/transparent_hugepage.
func chosen(name string) string {
	b, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/" + name)
	_, rest, _ := strings.Cut(string(b), "[")
	word, _, ok := strings.Cut(rest, "]")
	if !ok {
		return "none"
	}
	return word
}

// fabrics tells which provider of libfabric jobs would use.
func fabrics() finding {
	wish, err := providers.FromEnv(os.Getenv)
	if err == nil {
		var list []providers.Provider
		if list, err = providers.List(); err == nil {
			ok, why := providers.Automatic(providers.Choose(list, wish))
			if ok {
				return finding{levelOK, "fabric", why}
			}
			return finding{levelNote, "fabric", why + ": jobs use udp (gasrun -providers lists them)"}
		}
	}
	return finding{levelNote, "fabric", err.Error() + ": jobs use udp"}
}

// readable tries whether this process may read the memory of another one of its user, whose number
// and address are in text.
func readable(text string) finding {
	pid, at, _ := strings.Cut(text, " ")
	p, err1 := strconv.Atoi(pid)
	a, err2 := strconv.ParseUint(at, 16, 64)
	err := errors.Join(err1, err2)
	if err == nil {
		err = sys.ReadProcess(p, a, make([]byte, 4))
	}
	switch {
	case err == nil:
		return finding{levelOK, "other processes' memory", "can be read (process_vm_readv)"}
	case errors.Is(err, sys.ErrForbidden):
		scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
		return finding{levelNote, "other processes' memory", fmt.Sprintf(
			"cannot be read: registered memory is copied by its owner, which is slower; kernel.yama.ptrace_scope is %s (sysctl -w kernel.yama.ptrace_scope=0, docker run --cap-add SYS_PTRACE)", orNone(scope))}
	}
	return finding{levelNote, "other processes' memory", err.Error()}
}

func orNone(b []byte) string {
	if s := strings.TrimSpace(string(b)); s != "" {
		return s
	}
	return "none"
}

// room looks how much the socket may keep.
func room(conn *net.UDPConn) finding {
	raw, err := conn.SyscallConn()
	if err == nil {
		n := 0
		e := raw.Control(func(fd uintptr) {
			sys.Buffers(fd, askedRoom)
			n, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF)
		})
		if err = errors.Join(e, err); err == nil {
			n /= 2 // the kernel counts as much again for itself (socket(7))
			if n < askedRoom {
				return finding{levelNote, "sockets", fmt.Sprintf("keep %s of datagrams each, of %s that ranks ask for: floods are sent again (sysctl -w net.core.rmem_max=%d net.core.wmem_max=%[3]d)", sys.Amount(int64(n)), sys.Amount(askedRoom), askedRoom)}
			}
			return finding{levelOK, "sockets", fmt.Sprintf("keep %s of datagrams each", sys.Amount(int64(n)))}
		}
	}
	return finding{levelNote, "sockets", err.Error()}
}

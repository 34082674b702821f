package gas

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/jobenv"
	"github.com/argon-go/argon/internal/sys"
)

// Runs under way, for SIGQUIT.
var running struct {
	mu   sync.Mutex
	runs map[*run]bool
	sig  chan os.Signal
}

// diagnose has SIGQUIT answered for r until forget is called: a line per rank
// that says where it waits, all goroutine stacks, and exit with status 131.
func diagnose(r *run) (forget func()) {
	d := &running
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.runs) == 0 {
		d.runs = map[*run]bool{}
		d.sig = make(chan os.Signal, 1)
		sys.Catch(d.sig, syscall.SIGQUIT)
		go func(sig <-chan os.Signal) {
			if _, ok := <-sig; ok {
				quit()
			}
		}(d.sig)
	}
	d.runs[r] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.runs, r)
		if len(d.runs) == 0 {
			signal.Stop(d.sig)
			close(d.sig)
		}
	}
}

// mostDiagnosed is of how many ranks of this process SIGQUIT is answered.
const mostDiagnosed = 256

// quit answers SIGQUIT.
func quit() {
	d := &running
	d.mu.Lock()
	var out io.Writer = os.Stderr
	for r := range d.runs {
		out = r.cfg.Output
		nodes := r.nodes
		if len(nodes) > mostDiagnosed {
			// Of very many those that do not wait tell more than those that wait for
			// them.
			nodes = slices.Clone(nodes)
			slices.SortStableFunc(nodes, func(a, b *Node) int {
				return min(len(a.ep.Waiting()), 1) - min(len(b.ep.Waiting()), 1)
			})
			nodes = nodes[:mostDiagnosed]
		}
		for _, n := range nodes {
			fmt.Fprintln(out, n.diagnosis())
		}
		if more := len(r.nodes) - len(nodes); more > 0 {
			fmt.Fprintf(out, "argon: and %d more ranks\n", more)
		}
	}
	buf := make([]byte, 1<<20)
	for len(buf) < 64<<20 {
		if k := runtime.Stack(buf, true); k < len(buf) {
			buf = buf[:k]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	fmt.Fprintf(out, "\n%s\n", buf)
	os.Exit(jobenv.StatusQuit)
}

const (
	// lookFor is how long a rank is looked at before it is said not to wait; several
	// times what a rank spins and yields before it parks.
	lookFor = 20 * time.Millisecond
	// simLooks is how often where time is simulated: it does not pass meanwhile, and
	// is not to be asked for here.
	simLooks = 1000
)

// diagnosis is a line that says where n's rank waits and what it has under way.
func (n *Node) diagnosis() string {
	var where []string
	// A wait looks around before it parks, and after each wake-up: a rank that waits is
	// caught parked if it is looked at for a while.
	again := func(i int) bool { return i < simLooks }
	if _, simulated := n.ep.(conduits.Runner); !simulated {
		start := n.ep.Now()
		again = func(int) bool { return n.ep.Now()-start < lookFor }
	}
	for i := 0; again(i); i++ {
		for _, b := range n.ep.Waiting() {
			where = append(where, b.Blocked())
		}
		if len(where) > 0 {
			break
		}
		runtime.Gosched()
	}
	if len(where) == 0 {
		where = append(where, "not waiting")
	}
	handles := 0
	if n.x != nil {
		handles = n.x.Outstanding()
	}
	var s conduits.Stats
	n.ep.Stats(&s)
	line := fmt.Sprintf("argon: rank %d: %s; handles outstanding %d; requests sent %d, received %d; replies sent %d, received %d; out of credit %d times; slept %d times",
		n.rank, strings.Join(where, "; "), handles,
		s.Sent[conduits.Request], s.Received[conduits.Request], s.Sent[conduits.Reply], s.Received[conduits.Reply], s.NoCredit, s.Parks)
	line += n.pinDiagnosis()
	if d, ok := n.ep.(conduits.Diagnoser); ok {
		if more := d.Diagnosis(); more != "" {
			line += "; " + more
		}
	}
	return line
}

// pinDiagnosis says what is pinned, if anything ever was.
func (n *Node) pinDiagnosis() string {
	if n.cache == nil {
		return ""
	}
	var s firehose.Stats
	n.cache.Stats(&s)
	if s.Pins == 0 && s.RemoteHits+s.RemoteMisses == 0 {
		return ""
	}
	l := n.cache.Limits()
	return fmt.Sprintf("; pinned %d bytes of %d, at most %d so far; holds %d firehoses, %d to a rank; %d hits, %d misses, %d had to wait",
		s.Pinned, uint64(l.Budget)*l.Bucket, s.PeakPinned, s.Held, l.Share, s.RemoteHits, s.RemoteMisses, s.RemoteWaits)
}

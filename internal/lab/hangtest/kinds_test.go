package hangtest

import (
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/sys"
)

// napTime is how long a rank sleeps so that another one may have parked.
const napTime = 300 * time.Millisecond

// A kind is a way to hang. The line that is the cause has a comment with the kind's name.
type kind struct {
	name string
	run  func(n *gas.Node) error
	// first is a regular expression for the report's first line, besides the cause's line.
	first string
	// alive is of a kind that cannot be told from work, or hardly: it need not be told of unless asked.
	alive bool
}

var (
	never = make(chan int)
	stuck sync.Mutex
	sink  atomic.Int64
	heap  [][]byte
)

var (
	mutexIn = gas.RegisterCall("hang.mutex", func(n *gas.Node, a int64) int64 {
		stuck.Lock()
		stuck.Lock() // cause: handler-mutex
		return a
	})
	loopIn = gas.RegisterCall("hang.loop", func(n *gas.Node, a int64) int64 {
		for {
			sink.Add(1) // cause: handler-loop
		}
	})
	chanIn = gas.RegisterCall("hang.chan", func(n *gas.Node, a int64) int64 {
		return int64(<-never) // cause: handler-channel
	})
	echo = gas.RegisterCall("hang.echo", func(n *gas.Node, a int64) int64 { return a })
	task = gas.RegisterTask("hang.task", func(c *gas.Call, a int64) (int64, error) {
		err := c.Node.Wait(func() bool { return false }) // cause: task future
		return a, err
	})
	bulk = gas.RegisterCall("hang.bulk", func(n *gas.Node, a [50]int64) int64 { return a[0] })
)

// one has rank 1 call f, and all ranks meet then.
func one(f func(n *gas.Node) error) func(n *gas.Node) error {
	return func(n *gas.Node) error {
		if n.Rank() == 1 {
			if err := f(n); err != nil {
				return err
			}
		}
		return n.Barrier()
	}
}

// outside is one for what returns nothing and needs no Node.
func outside(f func()) func(n *gas.Node) error {
	return one(func(*gas.Node) error { f(); return nil })
}

// locked gives f two locks.
func locked(f func(n *gas.Node, a, b gas.Lock) error) func(n *gas.Node) error {
	return func(n *gas.Node) error {
		a, err := gas.NewLock(n)
		if err != nil {
			return err
		}
		b, err := gas.NewLock(n)
		if err != nil {
			return err
		}
		if err := f(n, a, b); err != nil {
			return err
		}
		return n.Barrier()
	}
}

// flagged gives f a word of each rank.
func flagged(f func(n *gas.Node, word gas.Ptr[uint64]) error) func(n *gas.Node) error {
	return func(n *gas.Node) error {
		p, err := gas.New[uint64](n)
		if err != nil {
			return err
		}
		if err := f(n, p); err != nil {
			return err
		}
		return n.Barrier()
	}
}

var kinds = []kind{
	{"channel", outside(func() {
		<-never // cause: channel
	}), "channel", false},
	{"select", outside(func() {
		select {} // cause: select
	}), "select", false},
	{"mutex", outside(func() {
		stuck.Lock()
		stuck.Lock() // cause: mutex
	}), "mutex", false},
	{"waitgroup", outside(func() {
		var wg sync.WaitGroup
		wg.Add(1)
		wg.Wait() // cause: waitgroup
	}), "WaitGroup", false},
	{"condition", outside(func() {
		c := sync.NewCond(&stuck)
		stuck.Lock()
		c.Wait() // cause: condition
	}), "Cond", false},
	{"loop", outside(func() {
		for {
			sink.Add(1) // cause: loop
		}
	}), "runs", true},
	{"starved", outside(func() {
		// Threads that share a processor, by their own doing here.
		runtime.GOMAXPROCS(8)
		cpus, _ := sys.Affinity()
		share := func() { runtime.LockOSThread(); _ = sys.SetAffinity(cpus[:1]) }
		for range 4 {
			go func() {
				share()
				for {
					sink.Add(1)
				}
			}()
		}
		for share(); ; {
			sink.Add(1) // cause: starved
		}
	}), "its process starved: threads ran for", true},
	{"collects", outside(func() {
		debug.SetGCPercent(1)
		live := make([]*int, 1<<20)
		for i := range live {
			live[i] = new(int)
		}
		for i := 0; ; i++ {
			live[i%len(live)] = new(int) // cause: collects
		}
	}), "collected garbage for", true},
	{"sleep", outside(func() {
		time.Sleep(time.Hour) // cause: sleep
	}), "sleeps", true},
	{"stdin", func(n *gas.Node) error {
		if n.Rank() == 0 {
			_, _ = io.ReadAll(os.Stdin) // cause: stdin
		}
		return n.Barrier()
	}, "standard input", true},
	{"accept", outside(func() {
		if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
			_, _ = l.Accept() // cause: accept
		}
	}), "reads or writes", true},
	{"stopped", outside(func() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		select {} // the signal takes a while
	}), "stopped", false},
	{"garbage", outside(func() {
		debug.SetMemoryLimit(1 << 20)
		for i := 0; ; i++ {
			if heap = append(heap, make([]byte, 1<<16)); len(heap) > 256 { // cause: garbage
				heap = heap[128:]
			}
		}
	}), "runs|garbage", true},
	{"goroutine", locked(func(n *gas.Node, a, _ gas.Lock) error {
		if n.Rank() == 0 {
			if err := a.Lock(n); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if n.Rank() == 1 {
			done := make(chan error)
			go func() {
				done <- a.Lock(n) // cause: goroutine
			}()
			return <-done
		}
		return nil
	}), "lock", false},
	{"crossed-locks", locked(func(n *gas.Node, a, b gas.Lock) error {
		if n.Rank() == 1 {
			a, b = b, a
		}
		if n.Rank() < 2 {
			if err := a.Lock(n); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if n.Rank() < 2 {
			return b.Lock(n) // cause: crossed-locks
		}
		return nil
	}), "DEADLOCK.*lock", false},
	{"lock-kept", locked(func(n *gas.Node, a, _ gas.Lock) error {
		if n.Rank() == 1 {
			if err := a.Lock(n); err != nil {
				return err
			}
			if err := n.Barrier(); err != nil {
				return err
			}
			<-never // cause: lock-kept
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		return a.Lock(n)
	}), "channel", false},
	{"lock-twice", locked(func(n *gas.Node, a, _ gas.Lock) error {
		if n.Rank() != 1 {
			return nil
		}
		if err := a.Lock(n); err != nil {
			return err
		}
		return a.Lock(n) // cause: lock-twice
	}), "DEADLOCK.*itself .lock", false},
	{"lock-in-barrier", locked(func(n *gas.Node, a, _ gas.Lock) error {
		if n.Rank() == 0 {
			if err := a.Lock(n); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if n.Rank() != 0 {
			return a.Lock(n) // cause: lock-in-barrier
		}
		return nil
	}), "DEADLOCK.*lock", false},
	{"lock-upgrade", locked(func(n *gas.Node, a, _ gas.Lock) error {
		if n.Rank() != 1 {
			return nil
		}
		if err := a.RLock(n); err != nil {
			return err
		}
		return a.Lock(n) // cause: lock-upgrade
	}), "lock", false},
	{"word", flagged(func(n *gas.Node, p gas.Ptr[uint64]) error {
		if n.Rank() == 1 {
			_, err := gas.WaitUntil(n, p, gas.Ge, 1) // cause: word
			return err
		}
		return nil
	}), "word at 1\\+0x", false},
	{"put-alone", flagged(func(n *gas.Node, p gas.Ptr[uint64]) error {
		switch n.Rank() {
		case 0:
			time.Sleep(napTime) // the other is asleep by then
			return p.On(1).Put(n, 7)
		case 1:
			_, err := gas.WaitUntil(n, p, gas.Eq, 7) // cause: put-alone
			return err
		}
		return nil
	}), "holds already", false},
	{"ring", flagged(func(n *gas.Node, p gas.Ptr[uint64]) error {
		if _, err := gas.WaitUntil(n, p, gas.Eq, 1); err != nil { // cause: ring
			return err
		}
		return gas.Store(n, p.On((n.Rank()+1)%n.Size()), 1)
	}), "all 3 ranks wait", false},
	{"condition-of-program", one(func(n *gas.Node) error {
		ready := false
		return n.Wait(func() bool { return ready }) // cause: condition-of-program
	}), "condition of the program", false},
	{"handler-mutex", func(n *gas.Node) error {
		if n.Rank() == 0 {
			if _, err := mutexIn.Call(n, 1, 7); err != nil {
				return err
			}
		}
		return n.Barrier()
	}, "mutex, in .* which another rank has called", false},
	{"handler-loop", func(n *gas.Node) error {
		if n.Rank() == 0 {
			if _, err := loopIn.Call(n, 1, 7); err != nil {
				return err
			}
		}
		return n.Barrier()
	}, "runs", true},
	{"handler-channel", func(n *gas.Node) error {
		if n.Rank() == 0 {
			if _, err := chanIn.Call(n, 1, 7); err != nil {
				return err
			}
		}
		return n.Barrier()
	}, "channel", false},
	{"no-answer", func(n *gas.Node) error {
		switch n.Rank() {
		case 0:
			if _, err := echo.Call(n, 1, 7); err != nil {
				return err
			}
		case 1:
			<-never // cause: no-answer
		}
		return n.Barrier()
	}, "channel", false},
	{"task", func(n *gas.Node) error {
		if n.Rank() == 0 {
			if _, err := task.Call(n, 1, 7); err != nil {
				return err
			}
		}
		return n.Barrier()
	}, "condition of the program", false},
	{"credit", func(n *gas.Node) error {
		if n.Rank() == 1 {
			<-never // cause: credit
		}
		for {
			if err := bulk.Send(n, 1, [50]int64{}); err != nil {
				return err
			}
		}
	}, "channel", false},
	{"team", func(n *gas.Node) error {
		t, err := n.World().Split(0, 0)
		if err != nil {
			return err
		}
		if n.Rank() == 1 {
			return t.Barrier() // cause: team
		}
		return n.Barrier()
	}, "DEADLOCK", false},
	{"crossed-teams", func(n *gas.Node) error {
		a, err := n.World().Split(0, 0)
		if err != nil {
			return err
		}
		b, err := n.World().Split(0, 0)
		if err != nil {
			return err
		}
		if n.Rank() == 1 {
			a, b = b, a
		}
		if err := a.Barrier(); err != nil { // cause: crossed-teams
			return err
		}
		return b.Barrier()
	}, "DEADLOCK", false},
	{"notified", func(n *gas.Node) error {
		if n.Rank() != 1 {
			return n.Barrier()
		}
		if err := n.BarrierNotify(); err != nil {
			return err
		}
		if err := n.BarrierWait(); err != nil {
			return err
		}
		<-never // cause: notified
		return nil
	}, "channel", false},
	{"polls", one(func(n *gas.Node) error {
		for done := false; !done; {
			n.Poll() // cause: polls
		}
		return nil
	}), "Poll|runs", true},
	{"tries", locked(func(n *gas.Node, a, _ gas.Lock) error {
		if n.Rank() == 0 {
			if err := a.Lock(n); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		for n.Rank() == 1 {
			if ok, err := a.TryLock(n); ok || err != nil { // cause: tries
				return err
			}
		}
		return nil
	}), "TryLock|runs", true},
	{"mailbox", func(n *gas.Node) error {
		m, err := gas.NewMailbox(n, "rows", func(*gas.Node, int, []int64) {})
		if err != nil {
			return err
		}
		if n.Rank() == 1 {
			<-never // cause: mailbox
		}
		return m.Sync()
	}, "channel", false},
	{"future", func(n *gas.Node) error {
		if n.Rank() == 0 {
			f, err := task.Go(n, 1, 7)
			if err != nil {
				return err
			}
			if _, err := f.Wait(); err != nil {
				return err
			}
		}
		return n.Barrier()
	}, "condition of the program", false},
	{"reduce", func(n *gas.Node) error {
		if n.Rank() == 1 {
			<-never // cause: reduce
		}
		_, err := gas.AllReduce(n, 1, gas.Sum)
		return err
	}, "channel", false},
	{"broadcast", func(n *gas.Node) error {
		if n.Rank() == 1 {
			<-never // cause: broadcast
		}
		_, err := gas.Broadcast(n, 1, 1)
		return err
	}, "channel", false},
}

package launch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/job/monitor"
	"github.com/argon-go/argon/internal/sys"
)

// viewing is how the job is looked at while it runs.
type viewing struct {
	top    bool
	page   string // where it is served; "": nowhere
	record string // file that gets what it would show, or ""
}

func (v *viewing) flags(f *flag.FlagSet) {
	f.BoolVar(&v.top, "top", false, "")
	f.BoolFunc("monitor", "", func(s string) error {
		if v.page = s; s == "true" {
			v.page = monitor.DefaultAddress
		} else if _, _, err := net.SplitHostPort(s); err != nil {
			return errors.New("not HOST:PORT, such as :8080 or localhost:8080")
		}
		return nil
	})
	f.StringVar(&v.record, "monitor-record", "", "")
}

// start begins to look at o's job, which is about to run. stop is called when it has ended; it is stuck if what -top writes is not read.
func (v *viewing) start(o *options) (stop func() (stuck bool), err error) {
	if !v.top && v.page == "" && v.record == "" {
		return func() bool { return false }, nil
	}
	feed := &monitor.Feed{}
	o.Feed = feed
	var file *os.File
	if v.record != "" {
		// A pipe that nothing reads is an error, and no wait without end.
		if file, err = os.OpenFile(v.record, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o666); err != nil {
			return nil, fmt.Errorf("%w (-monitor-record)", err)
		}
	}
	server, over := (*monitor.Server)(nil), make(chan struct{})
	if v.page != "" {
		if server, err = monitor.Serve(v.page, feed); err != nil {
			return nil, err
		}
		fmt.Fprintf(os.Stderr, "gasrun: the job is shown at %s (-monitor)\n", server.URL())
	}
	var screen *monitor.Screen
	if v.top {
		screen = v.screen(o)
		go func() {
			defer close(over)
			for view := feed.Next(context.Background(), nil); view != nil && screen.Show(view); {
				view = feed.Next(context.Background(), view)
			}
		}()
	}
	written := make(chan struct{})
	if file != nil {
		log := o.Log // of -top, too
		if !o.Quiet {
			fmt.Fprintf(log, "gasrun: what the job does is recorded in %s; gasrun monitor %[1]s shows it (-monitor-record)\n", v.record)
		}
		go func() {
			defer close(written)
			if err := errors.Join(feed.Record(file), file.Close()); err != nil {
				fmt.Fprintf(log, "gasrun: the recording ends: %v (-monitor-record)\n", err)
			}
		}()
	}
	return func() (stuck bool) {
		feed.Close()
		if file != nil {
			select {
			case <-written:
			case <-time.After(time.Second):
				fmt.Fprintf(os.Stderr, "gasrun: the recording ends before the job: %s takes nothing (-monitor-record)\n", v.record)
			}
		}
		if v.top {
			select {
			case <-over:
				screen.Leave()
			case <-time.After(time.Second):
				stuck = true
			}
		}
		if server != nil {
			server.Close()
		}
		return stuck
	}, nil
}

// showRecorded is gasrun monitor: it serves the page of a recording until a signal comes.
func showRecorded(args []string) error {
	if len(args) < 1 || len(args) > 2 || strings.HasPrefix(args[0], "-") {
		return errors.New("usage: gasrun monitor FILE [HOST:PORT]; a program of that name is gasrun -- monitor")
	}
	server, err := monitor.Replay(append(args, monitor.DefaultAddress)[1], args[0])
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	fmt.Printf("gasrun: %s is shown at %s\n", args[0], server.URL())
	<-ctx.Done()
	server.Close()
	return nil
}

// screen is where -top shows the job: standard error, or standard output if only that is a terminal. What
// the job writes to the same file goes by way of it.
func (v *viewing) screen(o *options) *monitor.Screen {
	file := os.Stderr
	if !sys.IsTerminal(2) && sys.IsTerminal(1) {
		file = os.Stdout
	}
	var size func() (width, height int)
	if sys.IsTerminal(file.Fd()) {
		size = func() (int, int) { return sys.TerminalSize(file.Fd()) }
	}
	s := monitor.NewScreen(file, size)
	same := func(f *os.File) bool {
		a, err := f.Stat()
		b, err2 := file.Stat()
		return err == nil && err2 == nil && os.SameFile(a, b)
	}
	if same(os.Stdout) {
		o.Stdout = s
	}
	if same(os.Stderr) {
		o.Stderr, o.Log = s, s
	}
	return s
}

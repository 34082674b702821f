package launch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/argon-go/argon/internal/job/monitor"
	"github.com/argon-go/argon/internal/sys"
)

// viewing is how the job is looked at while it runs.
type viewing struct {
	top  bool
	page string // where it is served; "": nowhere
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
}

// start begins to look at o's job, which is about to run. stop is called when it has ended; it is stuck if what -top writes is not read.
func (v *viewing) start(o *options) (stop func() (stuck bool), err error) {
	if !v.top && v.page == "" {
		return func() bool { return false }, nil
	}
	feed := &monitor.Feed{}
	o.Feed = feed
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
	return func() (stuck bool) {
		feed.Close()
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

package launch

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/sim/replay"
	"github.com/argon-go/argon/conduits/traffic"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/perfetto"
)

// recording has the flags for the traffic of a job, and for its trace.
type recording struct {
	record, trace, replay string // files
	last                  string // of the trace, a time
	compute               float64
}

func (r *recording) flags(f *flag.FlagSet) {
	f.StringVar(&r.record, "record", "", "")
	f.StringVar(&r.trace, "trace", "", "")
	f.Func("trace-last", "", func(s string) error {
		r.last = s
		if d, err := time.ParseDuration(s); err != nil || d <= 0 {
			return errors.New("not a time such as 5s or 500ms")
		}
		return nil
	})
	f.StringVar(&r.replay, "replay", "", "")
	r.compute = 1
	f.Func("compute", "", func(s string) (err error) {
		if r.compute, err = strconv.ParseFloat(s, 64); err != nil || !(r.compute >= 0 && r.compute <= replay.MaxCompute) {
			return fmt.Errorf("a factor from 0 to %g", float64(replay.MaxCompute))
		}
		return nil
	})
}

// finish checks the flags before those of the simulation, for a replay is one.
func (r *recording) finish(o *options, given map[string]bool) error {
	for _, v := range []struct{ name, value string }{{"record", r.record}, {"trace", r.trace}, {"replay", r.replay}} {
		if given[v.name] && v.value == "" {
			return fmt.Errorf("-%s: the name is empty", v.name)
		}
	}
	if !given["replay"] {
		if given["compute"] {
			return errors.New("-compute: only with -replay")
		}
		if !given["record"] {
			r.record = os.Getenv(jobenv.Record)
		}
		if !given["trace"] {
			r.trace = os.Getenv(jobenv.Trace)
		}
		if !given["trace-last"] {
			r.last = os.Getenv(jobenv.TraceLast)
		}
		if r.last != "" && r.trace == "" {
			r.trace = perfetto.LastName()
		}
		return nil
	}
	if given["conduit"] && o.Conduit != sim.Name {
		return fmt.Errorf("-replay: traffic is run on simulated machines, not on conduit %s (-conduit)", o.Conduit)
	}
	for name := range given {
		switch name {
		case "replay", "compute", "conduit", "sim", "seed", "machine", "topology", "queue", "fault", "limit", "q", "v":
		default:
			return fmt.Errorf("-%s and -replay exclude each other: the recording decides, or no program runs", name)
		}
	}
	o.Conduit = sim.Name
	return nil
}

// start writes the beginnings of the recording and the trace, which the ranks go on with.
func (r *recording) start(o *options) error {
	for _, v := range []struct {
		flag, file, key string
		begin           []byte
	}{
		{"-record", r.record, jobenv.Record, traffic.Header(o.Size, o.Conduit, o.arg)},
		{"-trace", r.trace, jobenv.Trace, nil},
	} {
		if v.file == "" {
			continue
		}
		for _, h := range o.Hosts {
			if !h.Here && v.flag == "-record" {
				return fmt.Errorf("%s: ranks on host %s cannot write to %s here: use it on hosts that are this machine (-hosts localhost:2,localhost:2)", v.flag, h.Name, v.file)
			}
		}
		abs, err := filepath.Abs(v.file)
		if err == nil {
			err = os.WriteFile(abs, v.begin, 0o666)
		}
		if err != nil && (v.begin != nil || !errors.Is(err, syscall.ENOSPC)) { // of a full disk ranks tell that have something to write
			return fmt.Errorf("%s: %w", v.flag, err)
		}
		o.Env = append(o.Env, v.key+"="+abs)
		if v.flag == "-trace" {
			o.Trace = abs
		}
	}
	if r.last != "" {
		o.Env, o.Last = append(o.Env, jobenv.TraceLast+"="+r.last), true
	}
	return nil
}

// finished mends the trace of a job that is over, of which ranks may have been killed, and tells of one that they have kept until then.
func (r *recording) finished(w io.Writer) {
	if r.trace == "" {
		return
	}
	f, err := os.OpenFile(r.trace, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer f.Close()
	size, err := perfetto.Mend(f, false) // of a device nothing can be, nor while a disk is stuck
	if at, bad := f.Stat(); err != nil || bad != nil || r.last == "" || !at.Mode().IsRegular() {
		return
	} else if size == 0 {
		_ = os.Remove(r.trace)
		return
	}
	fmt.Fprintf(w, "gasrun: what the ranks have done last, %s of each, is in %s (-trace-last)\n", r.last, r.trace)
}

// load is the traffic of -replay.
func (r *recording) load() (*traffic.Traffic, error) {
	if what, is := strings.CutPrefix(r.replay, traffic.Tables); is {
		return traffic.NPB(what)
	}
	f, err := os.Open(r.replay)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return traffic.Read(r.replay, f)
}

// play runs the traffic and prints what came of it; usage reports whether an error is the command line's.
func (r *recording) play(w io.Writer, c sim.Config) (usage bool, err error) {
	t, err := r.load()
	if err != nil {
		return true, fmt.Errorf("-replay: %w", err)
	}
	if err := c.Validate(len(t.Ranks)); err != nil {
		return true, err
	}
	report, err := replay.Run(t, replay.Options{Sim: c, Compute: r.compute})
	if err != nil {
		return false, fmt.Errorf("-replay: %s: %w", r.replay, err)
	}
	fmt.Fprintf(w, "%s (%s) on %v\n", r.replay, t.Program, c)
	return false, report.Print(w)
}

package launch

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys"
)

// bootNoise bounds what a login on another host may print before the deputy
// speaks.
const bootNoise = 256 << 10

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

// start starts the deputy and brings it so far that it could start its ranks. If
// ctx ends first so does the deputy.
func (h *host) start(ctx context.Context, spawn *spawner) error {
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

// begin starts the ranks of a host whose deputy is in this process.
func (h *host) begin(path string, spawn *spawner) error {
	j := h.j
	d := &deputy{task: h.task, config: &j.Config, path: path, spawn: spawn, children: make(chan os.Signal, 1)}
	h.inside = d
	h.link = newCall(d.call)
	d.link = newCall(func(f *frame) { _ = h.hear(f) })
	d.pipes = func(rank int, outputs [2]*os.File) error {
		if err := j.newStreams(rank); err != nil {
			return err
		}
		go j.ranks[rank].out.run(outputs[0])
		go j.ranks[rank].err.run(outputs[1])
		return nil
	}
	errOrphans, err := d.gather(j.Guard, j.Remove, j.Exclusive)
	if errOrphans != nil && j.Verbose {
		j.log.printf("gasrun: %v", errOrphans)
	}
	if err := sys.MembarrierError(); err != nil && j.Verbose {
		j.log.printf("gasrun: no membarrier(2) here (%v): ranks make a fence at each message in shared memory, and locks do not favour a goroutine", err)
	}
	if err != nil {
		return err
	}
	if m, ok := j.memory.(*netMemory); ok {
		if d.outfit, err = newOutfit(&d.task, m.key, m.server.Addr().String(), j.Config.memory()); err != nil {
			return err
		}
	} else if d.outfit.file, d.outfit.fileKey = j.memory.File(), jobenv.SegFD; j.single() {
		d.outfit.fileKey = jobenv.SimStatus
	}
	var in inheritance
	d.outfit.bequeath(&in)
	return d.muster(in, j.Stdin)
}

// launch starts the process through which the deputy is reached.
func (h *host) launch(spawn *spawner) error {
	var argv []string
	env := os.Environ()
	if h.Here {
		argv = []string{h.j.Deputy}
		env = append(env, EnvDeputy+"=1")
	} else {
		argv = append(append(argv, h.j.ssh()...), h.Name, bootScript(h.token(), h.j.self, h.j.TempDir))
	}
	h.cmd = exec.Command(argv[0], argv[1:]...)
	h.cmd.Env = env
	in, err1 := h.cmd.StdinPipe()
	out, err2 := h.cmd.StdoutPipe()
	lines, err3 := h.cmd.StderrPipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		return limited(err)
	}
	if h.task.StdinHere {
		h.cmd.ExtraFiles = []*os.File{h.j.Stdin} // stdinFile
	}
	// A group of its own, for a terminal's signals are for the launcher, which
	// passes them on. SIGTERM when the launcher dies: a deputy that gets it
	// directly cleans up as it does at the end of its input.
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	var err error
	spawn.do(func() { err = h.cmd.Start() })
	if err != nil {
		hint := ""
		if !h.Here {
			hint = " (-ssh)"
		}
		return fmt.Errorf("cannot start %s: %w%s", argv[0], err, hint)
	}
	h.in, h.out = in, out
	go h.complaints(lines)
	go func() {
		h.state, _ = h.cmd.Process.Wait() // Cmd's would close what has not been read
		close(h.exited)
		// Processes that it has started may hold the pipe open (ssh's ControlPersist).
		lines.(*os.File).SetReadDeadline(time.Now().Add(pumpHurry / 4))
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
func (h *host) complaints(r io.ReadCloser) {
	defer close(h.silent)
	defer r.Close()
	in := bufio.NewReaderSize(r, 4096)
	for {
		line, err := in.ReadSlice('\n')
		if s := errs.Line(strings.TrimRight(string(line), "\r\n \t"), 0); s != "" {
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
	task := h.task.encode()
	if n := len(task) + taskFrame; n > maxFrame {
		h.link.close()
		h.link = nil // there is no task, and no goroutine listens for an answer
		return h.failure("arguments and environment of the ranks have %d bytes, at most %d", n, maxFrame)
	}
	h.link.send(frameJob, nil, task)
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

// shorten makes of a line of the deputy, or of ssh, what fits a message: escaped, and of
// at most tailWidth bytes.
func shorten(s string) string { return errs.Line(s, tailWidth) }

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
	ws, _ := h.state.Sys().(syscall.WaitStatus)
	switch {
	case ws.Signaled() && !h.quiet.Load():
		cause += fmt.Sprintf(" (%s was killed by %s)", name, sys.SignalName(ws.Signal()))
	case ws.Exited() && ws.ExitStatus() != 0:
		cause += fmt.Sprintf(" (%s exited with status %d)", name, ws.ExitStatus())
	}
	return h.failure("%s", cause)
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
			h.link.drain(window)
		}
		if err != nil {
			break
		}
	}
	h.link.send(frameProgram, nil, nil)
}

// ssh is the command that starts a deputy on another host.
func (j *job) ssh() []string {
	if len(j.SSH) > 0 {
		return j.SSH
	}
	return sshCommand(envDuration(j.Env, jobenv.DeadTime))
}

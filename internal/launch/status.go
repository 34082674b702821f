package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/claim"
)

// A launcher answers at an abstract socket, whose name has that of the job, questions of one line of its user and of root: what the job
// is, or where its ranks wait. An answer ends with the connection.
const (
	askPrefix = "@argon-job-"
	askWhat   = "what\n"
	askWhere  = "where\n"
)

// askLimit is how long a launcher that is not stopped may take to say what its job is, besides which it asks ranks.
const askLimit = 5 * time.Second

// askMost is how long what it says may be, bytes.
const askMost = 1 << 20

// listen answers until stop is called. A system without such sockets has jobs that cannot be asked.
func (j *job) listen() (stop func()) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: askPrefix + j.id, Net: "unix"})
	if err != nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	begun := time.Now()
	all.Go(func() {
		for {
			c, err := l.AcceptUnix()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil: // no descriptors at the moment
				time.Sleep(10 * time.Millisecond)
			default:
				all.Go(func() {
					defer c.Close()
					defer context.AfterFunc(ctx, func() { c.Close() })()
					if who, err := claim.Credentials(c); err == nil && (who.UID == os.Geteuid() || who.UID == 0) {
						reply(ctx, j, c, time.Since(begun).Round(time.Second))
					}
				})
			}
		}
	})
	return func() { cancel(); l.Close(); all.Wait() }
}

// reply answers what c asks, of a job that has run for so long.
func reply(ctx context.Context, j *job, c net.Conn, ran time.Duration) {
	_ = c.SetDeadline(time.Now().Add(askLimit + 2*j.AnswerGrace))
	asked, _ := bufio.NewReader(io.LimitReader(c, int64(len(askWhere)))).ReadString('\n')
	text := fmt.Sprintf("job %d: %s, ranks 0..%d, for %v", os.Getpid(), filepath.Base(j.Program), j.Size-1, ran)
	switch asked {
	case askWhat:
		fmt.Fprintln(c, text)
	case askWhere:
		told := make(chan struct{})
		var report strings.Builder // the job does not wait for the one that asks
		q := &question{head: text, most: fewLines, then: func() { close(told) }}
		q.say = func(format string, args ...any) { fmt.Fprintf(&report, format+"\n", args...) }
		j.post(func() {
			if j.ending || j.question != nil && !j.question.silent {
				q.say("gasrun: %s: it ends, or is asked already", text)
				q.then()
				return
			}
			rearm(j)
			j.askAside(j.AnswerGrace, q)
		})
		select {
		case <-told:
			_, _ = io.WriteString(c, report.String())
		case <-ctx.Done():
		}
	}
}

// Jobs are the names of the jobs of this user's launchers here, of all users' for root, whose launchers let them be asked.
func Jobs() (ids []string, err error) {
	b, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, errs.Resource("launch: jobs cannot be listed: %v", err)
	}
	for line := range strings.Lines(string(b)) {
		if _, id, ok := strings.Cut(strings.TrimSpace(line), askPrefix); ok && !slices.Contains(ids, id) {
			if c, err := ask(id, ""); err == nil {
				c.Close()
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// ask asks the launcher of a job. Its answer is to be read from the connection.
func ask(id, question string) (net.Conn, error) {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: askPrefix + id, Net: "unix"})
	if err != nil {
		return nil, err
	}
	who, err := claim.Credentials(c)
	if err == nil && who.UID != os.Geteuid() && os.Geteuid() != 0 {
		err = fmt.Errorf("job %s is user %d's", id, who.UID)
	}
	if err == nil {
		_ = c.SetDeadline(time.Now().Add(askLimit + 2*DefaultAnswerGrace))
		_, err = io.WriteString(c, question)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Status writes to w where the ranks of a job wait, which its launcher asks them, or of several jobs which there are. job is the number of
// the launcher's process; "" means the only job.
func Status(w io.Writer, job string) error {
	ids, err := Jobs()
	if err != nil {
		return err
	}
	asked, question := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return job != "" && !strings.HasPrefix(id+".", job+".") }), askWhere
	switch {
	case len(ids) == 0:
		return errs.BadArg("launch: no gasrun of yours runs a job here; a program that has all its ranks in one process says where they wait after kill -USR1")
	case len(asked) == 0:
		return errs.BadArg("launch: no job is %s; there are %s", job, strings.Join(ids, ", "))
	case len(asked) > 1:
		question = askWhat
	}
	var failed []error
	for _, id := range asked {
		c, err := ask(id, question)
		if err == nil {
			var text []byte
			text, err = io.ReadAll(io.LimitReader(c, askMost))
			c.Close()
			fmt.Fprint(w, errs.Printable(string(text), 0)) // which another user may have made
			if err == nil && len(text) == 0 {
				err = io.EOF
			}
		}
		if err != nil && (question == askWhere || errors.Is(err, os.ErrDeadlineExceeded)) { // of several one may end meanwhile
			failed = append(failed, errs.Resource("launch: job %s has ended, or its gasrun is stopped: %v", id, err))
		}
	}
	if len(asked) > 1 {
		fmt.Fprintln(w, "gasrun status JOB, which is the number, says where the ranks of one wait")
	}
	return errors.Join(failed...)
}

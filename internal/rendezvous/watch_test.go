package rendezvous

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/job/jobkey"
)

// TestWatch: a watcher learns of the job's failure, before and after it has come,
// and of the service's end, and takes no seat.
func TestWatch(t *testing.T) {
	var l log
	j := serve(t, ServerConfig{Size: 1, Logf: l.printf})
	watch := func() *Watch {
		t.Helper()
		w, err := NewWatch(within(t), j.addr, j.key, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Close)
		return w
	}
	early, closed := watch(), watch()
	if _, err := NewWatch(within(t), j.addr, jobkey.New(), time.Minute); err == nil || !strings.Contains(err.Error(), errOtherKey.Error()) {
		t.Errorf("with another key: %v", err)
	}
	m := j.all()
	closed.Close()
	if err := <-closed.Ended(); err == nil || errors.Is(err, ErrJobFailed) {
		t.Errorf("after Close: %v", err)
	}
	select {
	case err := <-early.Ended():
		t.Fatalf("nothing has happened: %v", err)
	default:
	}
	m[0].Fail(0, 7, "out of ink\n\x1b[2J")
	for what, w := range map[string]*Watch{"early": early, "late": watch()} {
		if err := <-w.Ended(); !errors.Is(err, ErrJobFailed) || !strings.Contains(err.Error(), `rank 0 failed: out of ink\n\x1b[2J`) {
			t.Errorf("%s: %v", what, err)
		}
	}
	j = serve(t, ServerConfig{Size: 1})
	w := watch()
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if err := <-w.Ended(); err == nil || errors.Is(err, ErrJobFailed) || !strings.Contains(err.Error(), "lost the rendezvous") {
		t.Errorf("after the service's end: %v", err)
	}
	var none *Watch
	none.Close()
	if none.Ended() != nil {
		t.Error("no Watch has ended")
	}
}

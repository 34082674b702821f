package udp

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/rendezvous"
)

// TestHearVerdict: a rank that believes another one has failed waits for what the
// rendezvous says as long as that may still come.
func TestHearVerdict(t *testing.T) {
	const long = time.Hour
	ended := make(chan struct{})
	m := newMember(0, 3)
	go m.set(2, errors.New("it is the first to fail"), false)
	m.hearVerdict(ended, long)
	if f := m.failed.Load(); f == nil || f.Rank != 2 {
		t.Fatalf("heard of %v", f)
	}
	m = newMember(0, 3)
	go close(ended)
	m.hearVerdict(ended, long)
	m.hearVerdict(nil, time.Millisecond)
	if f := m.failed.Load(); f != nil {
		t.Fatalf("heard of %v", f)
	}
}

// TestVerdictOfLost: a rank whose rendezvous is lost while it waits for the verdict
// does not wait for its end.
func TestVerdictOfLost(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	key := jobkey.New()
	srv, err := rendezvous.Serve(l, rendezvous.ServerConfig{Key: key, Size: 2, Logf: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	ms := [2]*member{newMember(0, 2), newMember(1, 2)}
	var wait sync.WaitGroup
	for r, m := range ms {
		wait.Go(func() {
			var err error
			m.client, err = rendezvous.Join(t.Context(), srv.Addr().String(), key, rendezvous.Hello{Rank: r, Size: 2, Host: "x", Port: 1, Incarnation: 1}, m.events())
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if t.Failed() {
		return
	}
	ms[0].fail(1, errors.New("silence"))
	srv.Close()
	ms[1].fail(0, errors.New("silence"))
	for r, m := range ms {
		<-m.client.Ended()
		if m.failed.Load() == nil {
			t.Errorf("rank %d knows of no failure", r)
		}
		_ = m.client.Close()
	}
}

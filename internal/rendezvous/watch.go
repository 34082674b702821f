package rendezvous

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/argon-go/argon/internal/job/jobkey"
)

// A Watch is a connection to the service of one that holds the job's key and is no
// rank, such as a launcher's process on another host: it learns that the job has
// failed, or that the service is lost.
type Watch struct {
	conn  net.Conn
	ended chan error
}

// ErrJobFailed is matched by the error of [Watch.Ended] if the job has failed, by word of
// the service.
var ErrJobFailed = errors.New("the job has failed")

// NewWatch connects to the service at server, "host:port". The connection is lost
// when the service's host has been silent for dead, at least 2 s. It ends when ctx
// does before the service has answered.
func NewWatch(ctx context.Context, server string, key jobkey.Key, dead time.Duration) (*Watch, error) {
	id, err := newIdentity(key)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", server)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	t := tls.Client(conn, id.config())
	var buf []byte
	if err = t.Handshake(); err == nil {
		if _, err = t.Write(frame(nil, kWatch, nil)); err == nil {
			var k kind
			if k, _, err = readFrame(t, &buf, maxFrame); err == nil && k != kWatch {
				err = fmt.Errorf("an answer of kind %d", k)
			}
		}
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("rendezvous: cannot watch the job at %s: %s", server, reason(err))
	}
	tune(conn, max(dead, leastDead))
	w := &Watch{conn: conn, ended: make(chan error, 1)}
	go func() {
		k, body, err := readFrame(t, &buf, maxFrame)
		if err != nil {
			w.ended <- fmt.Errorf("lost the rendezvous at %s: %s", server, reason(err))
			return
		}
		if f, ok := parseFailure(body); k == kFailed && ok {
			w.ended <- fmt.Errorf("%w: %v", ErrJobFailed, f.err())
			return
		}
		w.ended <- fmt.Errorf("the rendezvous at %s said something of kind %d", server, k)
	}()
	return w, nil
}

// Ended gets one error: one that matches ErrJobFailed and names the rank and the
// cause, or that the service is lost, which also comes after Close.
func (w *Watch) Ended() <-chan error {
	if w == nil {
		return nil
	}
	return w.ended
}

// Close ends the connection.
func (w *Watch) Close() {
	if w != nil {
		w.conn.Close()
	}
}

// A watcher is the service's side of a Watch.
type watcher struct {
	conn net.Conn // below TLS
	out  sender
	told bool // of the failure; guarded by Server.mu
}

// watched keeps a watcher's connection until its end.
func (s *Server) watched(conn net.Conn, t *tls.Conn) {
	w := &watcher{conn: conn}
	w.out.w = t
	w.out.next = func() []byte {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.failed == nil || w.told {
			return nil
		}
		w.told = true
		return frame(nil, kFailed, s.failed.append)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.watchers[w] = struct{}{}
	s.mu.Unlock()
	if _, err := t.Write(frame(nil, kWatch, nil)); err == nil {
		w.out.kick()
		var b [1]byte
		_, _ = t.Read(b[:]) // it says nothing more
	}
	s.mu.Lock()
	delete(s.watchers, w)
	s.mu.Unlock()
}

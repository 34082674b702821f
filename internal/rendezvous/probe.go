package rendezvous

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/sys/awake"
)

// stagger is how long an address of the service has before the next one is tried.
const stagger = 200 * time.Millisecond

// Reach returns the one of servers where the service answers, which has those addresses,
// "host:port", the most promising first, but not all of them here. All ranks of a job must
// use one family of addresses, so that the second family's turn comes when the first has
// failed or has lost the packets that begin a connection twice (the system repeats them after
// 1 and 3 s), and not for a machine that is slow. What answers must hold the job's key: an
// address may be another machine's here. The error is a list of what is wrong with each.
func Reach(ctx context.Context, servers []string, key jobkey.Key) (string, error) {
	const otherFamily = 6 * time.Second // in time that this process runs
	type outcome struct {
		i   int
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	patient, end := awake.WithTimeout(ctx, otherFamily)
	defer end()
	outcomes := make(chan outcome, len(servers))
	first := 0                    // how many of the first family have not failed
	others := make(chan struct{}) // closed when that is none
	for i, s := range servers {
		mine := family(s) == family(servers[0])
		if mine {
			first++
		}
		go func() {
			turn, late := time.After(time.Duration(i)*stagger), (<-chan struct{})(nil)
			if !mine {
				turn, late = nil, patient.Done()
			}
			select {
			case <-turn:
			case <-late:
			case <-others:
			case <-ctx.Done():
				outcomes <- outcome{i, ctx.Err()}
				return
			}
			outcomes <- outcome{i, persist(patient, func() error { return ask(ctx, s, key) })}
		}()
	}
	why := make([]string, len(servers))
	for range servers {
		o := <-outcomes
		if o.err == nil {
			return servers[o.i], nil
		}
		text := reason(o.err)
		if ctx.Err() != nil || errors.Is(o.err, os.ErrDeadlineExceeded) {
			text = "no answer"
		}
		why[o.i] = servers[o.i] + ": " + text
		if family(servers[o.i]) == family(servers[0]) {
			if first--; first == 0 {
				close(others)
			}
		}
	}
	return "", errors.New(strings.Join(why, "; "))
}

// persist calls f, and again until ctx ends while no host answers to the address: one whose cable has
// just been plugged in does not for a moment.
func persist(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !errors.Is(err, syscall.EHOSTUNREACH) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(stagger):
		}
	}
}

// family reports whether server, an address with a port, is of IPv6.
func family(server string) (is6 bool) {
	a, err := netip.ParseAddrPort(server)
	return err == nil && a.Addr().Unmap().Is6()
}

// ask finds out whether the service at server, "host:port", can be reached and
// holds the key. It takes no seat, and the service does not count it as a
// stranger. It ends when ctx does.
func ask(ctx context.Context, server string, key jobkey.Key) error {
	id, err := newIdentity(key)
	if err != nil {
		return err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", server)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err = probe(conn, id); err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("who answers is not the job's rendezvous: %s", reason(err))
}

// probe is ask on a connection. Only the answer proves that the service has
// accepted this side's certificate, which the handshake does not wait for.
func probe(conn net.Conn, id *identity) error {
	t := tls.Client(conn, id.config())
	if err := t.Handshake(); err != nil {
		return err
	}
	if _, err := t.Write(frame(nil, kProbe, nil)); err != nil {
		return err
	}
	var buf []byte
	k, _, err := readFrame(t, &buf, maxFrame)
	if err == nil && k != kBye {
		err = fmt.Errorf("an answer of kind %d", k)
	}
	return err
}

package rendezvous

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/argon-go/argon/internal/job/jobkey"
)

// Probe finds out whether the service at server, "host:port", can be reached and
// holds the key. It takes no seat, and the service does not count it as a
// stranger. It ends when ctx does.
func Probe(ctx context.Context, server string, key jobkey.Key) error {
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

// probe is Probe on a connection. Only the answer proves that the service has
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

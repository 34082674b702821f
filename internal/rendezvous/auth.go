package rendezvous

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/sys"
)

// errOtherKey: the other side's key is not the job's.
var errOtherKey = errors.New("another job key")

// identity is the certificate that both sides show each other, with a key that is
// derived from the job's.
type identity struct {
	cert   tls.Certificate
	public ed25519.PublicKey
}

func newIdentity(k jobkey.Key) (*identity, error) {
	if !k.Valid() {
		return nil, errs.BadArg("rendezvous: no job key (%s, %s)", jobenv.JobKeyFile, jobenv.JobKey)
	}
	seed := k.Seed("rendezvous")
	private := ed25519.NewKeyFromSeed(seed[:])
	public := private.Public().(ed25519.PublicKey)
	// Neither side looks at anything but the public key, so that hosts whose clocks are
	// wrong meet too.
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Unix(0, 0),
		NotAfter:     time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, fmt.Errorf("rendezvous: certificate: %w", err)
	}
	return &identity{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, public}, nil
}

// config is for both sides. TLS checks that the one that shows a certificate has its
// private key.
func (id *identity) config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		Certificates:       []tls.Certificate{id.cert},
		ClientAuth:         tls.RequireAnyClientCert,
		InsecureSkipVerify: true, // no authority signs here: verify does it
		VerifyConnection:   id.verify,
		// Nothing here need stay secret for decades, and ten thousand ranks come at once.
		CurvePreferences:            []tls.CurveID{tls.X25519},
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: true,
	}
}

func (id *identity) verify(s tls.ConnectionState) error {
	if len(s.PeerCertificates) > 0 {
		if k, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey); ok && k.Equal(id.public) {
			return nil
		}
	}
	return errOtherKey
}

// tune has the kernel notice a dead host within about dead, and not much sooner.
// A conn that is no TCP connection is left as it is.
func tune(conn net.Conn, dead time.Duration) {
	c, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	// With TCP_USER_TIMEOUT a connection ends by keepalive when nothing has come for
	// that long and a probe is unanswered, however many there were (tcp(7)): many
	// probes, so that a path that loses each fifth packet keeps it.
	const probes = 20
	c.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: dead / 3, Interval: max((dead-dead/3)/probes, time.Second), Count: probes,
	})
	if raw, err := c.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { sys.SetUserTimeout(fd, dead) })
	}
}

// reason is err in few words, without addresses: the printer knows them.
func reason(err error) string {
	var (
		no  syscall.Errno
		dns *net.DNSError
	)
	switch {
	case err == nil:
		return "no reason"
	case errors.Is(err, errOtherKey), strings.HasSuffix(err.Error(), "remote error: tls: bad certificate"):
		return errOtherKey.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the other side closed the connection"
	case errors.Is(err, net.ErrClosed):
		return "closed"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "timed out"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &no):
		return no.Error()
	case errors.As(err, &dns):
		if dns.IsNotFound {
			return "no such host"
		}
		return errs.Line(dns.Err, 200)
	}
	// The sender of something wrong may have had a hand in the text.
	return clip(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, err.Error()), 200)
}

package rendezvous

import (
	"context"
	"net/netip"

	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/internal/errs"
)

// NoRank stands for the rank that has failed when the job has failed as a
// whole, such as when the launcher ends it.
const NoRank = -1

// Hello is what a rank says of itself.
type Hello struct {
	// Rank and Size are its place in the job.
	Rank, Size int
	// Host names the machine: ranks with equal strings share memory. At most
	// MaxHost bytes.
	Host string
	// Port and Addr are where its datagrams are received. The zero Addr stands for
	// the local address of the TCP connection to the service, or what other hosts
	// see in its place if that is the loopback address.
	Port uint16
	Addr netip.Addr
	// Incarnation is the number of its run, see package seal.
	Incarnation uint64
	// Agree is a text that must be equal on all ranks, such as "argon 1, datagram
	// 1400". At most MaxAgree bytes.
	Agree string
}

// The longest texts of a Hello, bytes.
const (
	MaxHost  = 255
	MaxAgree = 1024
)

// Events are called as the job goes on, one at a time, in the same order as the
// service has noticed them, until Close; nil ones are left out. They must not
// block, and not call Close, Leave, Put or Get of the Client. The first may come
// before Join has returned; none comes if Join fails.
type Events struct {
	// Attached: all ranks have called Attach, so that Segment knows.
	Attached func()
	// Failed: the job has failed, because of rank (NoRank: none in particular).
	// Called once at most, and no other event after it.
	Failed func(rank, status int, cause string)
	// Left: rank has left in good order.
	Left func(rank int)
}

// A Client is one rank's connection to the rendezvous. Its methods may be called
// by any goroutine.
type Client struct{}

// Join connects to the service at server, "host:port", and returns when all
// ranks of the job are there. It tries again while nobody listens there or the
// name is unknown, until ctx ends.
func Join(ctx context.Context, server string, key seal.Key, h Hello, e Events) (*Client, error) {
	return nil, errs.NotSupported("rendezvous: to come")
}

// Instance is a number that no other job has, such as for seal.Key.ForJob; the
// same on all ranks.
func (c *Client) Instance() [16]byte { return [16]byte{} }

// Addr is where rank receives datagrams.
func (c *Client) Addr(rank int) netip.AddrPort { return netip.AddrPort{} }

// Incarnation is the one that rank has said in its Hello.
func (c *Client) Incarnation(rank int) uint64 { return 0 }

// Host numbers the hosts from 0 in the order of their first ranks: ranks of
// which it is equal share one.
func (c *Client) Host(rank int) int { return 0 }

// Attach announces this rank's segment, its size in bytes, and its rights. Once.
func (c *Client) Attach(size uint64, rights uint32) error { return nil }

// Segment is what rank has announced by Attach, once Events.Attached was called;
// before, zeros.
func (c *Client) Segment(rank int) (size uint64, rights uint32) { return }

// Put stores a value for all ranks under a key that nobody has put before, of at
// most MaxKey and MaxValue bytes.
func (c *Client) Put(key string, value []byte) error { return nil }

// Get waits until a rank has put key and returns its value, which is the
// caller's.
func (c *Client) Get(ctx context.Context, key string) ([]byte, error) { return nil, nil }

// The bounds of the key-value store: bytes of a key and of a value, and keys of
// a job.
const (
	MaxKey   = 255
	MaxValue = 32 << 10
	MaxKeys  = 1 << 16
)

// Fail declares that rank, this one or another one, has failed, and tells all.
// It does not block. Only the first failure of a job counts.
func (c *Client) Fail(rank int, cause string) {}

// Leave says that this rank leaves in good order, and returns when the service
// knows. No event comes after it. Close is still to be called.
func (c *Client) Leave() error { return nil }

// Close ends the connection. Without Leave the rank has failed.
func (c *Client) Close() error { return nil }

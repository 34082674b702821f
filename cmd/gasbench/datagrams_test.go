package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/gastest"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

func TestOwnAddress(t *testing.T) {
	needUDP(t)
	for at, want := range map[string]string{"": "127.0.0.1", "127.0.0.1:9": "127.0.0.1", "[::1]:9": "::1"} {
		got, err := ownAddress(func(string) string { return at })
		if err != nil && at == "[::1]:9" {
			continue // no IPv6
		}
		if err != nil || got.String() != want {
			t.Errorf("rendezvous %q: %v, %v", at, got, err)
		}
	}
	if a, err := ownAddress(func(string) string { return "nowhere" }); err == nil {
		t.Errorf("no address at all gives %v", a)
	}
}

// relay passes datagrams on between the sockets of the two ranks and loses one in
// so many of those to each rank, 0 for none.
type relay struct {
	at   [2]*net.UDPConn // where rank i sends to
	to   [2]atomic.Pointer[netip.AddrPort]
	lose [2]int
	lost atomic.Int64
}

func newRelay(t *testing.T, lose [2]int) *relay {
	r := &relay{lose: lose}
	for i := range r.at {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadBuffer(4 << 20)
		r.at[i] = c
		t.Cleanup(func() { _ = c.Close() })
	}
	for i := range r.at {
		go func() {
			buf := make([]byte, 1<<16)
			for k := 1; ; k++ {
				n, from, err := r.at[i].ReadFromUDPAddrPort(buf)
				if err != nil {
					return
				}
				r.to[i].Store(&from)
				to := r.to[1-i].Load()
				if lose := r.lose[1-i]; to == nil || lose > 0 && k%lose == 0 {
					r.lost.Add(1)
					continue
				}
				_, _ = r.at[1-i].WriteToUDPAddrPort(buf[:n], *to)
			}
		}()
	}
	return r
}

// TestLoss checks that references come to their end, with all bytes, when
// datagrams are lost.
func TestLoss(t *testing.T) {
	testmain.Long(t)
	needUDP(t)
	for _, lose := range [][2]int{{0, 20}, {7, 20}} {
		relays := []*relay{newRelay(t, lose), newRelay(t, lose), newRelay(t, lose)}
		gastest.RunConfig(t, gas.Config{Ranks: 2, Handlers: handlers}, func(n *gas.Node) error {
			j, err := newJob(n)
			if err != nil {
				return err
			}
			defer j.close()
			if _, err := j.openSockets(); err != nil {
				return err
			}
			at := "127.0.0.1"
			for _, r := range relays {
				at += fmt.Sprintf(" %d", r.at[n.Rank()].LocalAddr().(*net.UDPAddr).Port)
			}
			if err := j.connectSockets(at); err != nil {
				return err
			}
			// The relays learn the ranks' addresses.
			for _, f := range j.sockets.all() {
				if err := j.send(f, []byte{0}); err != nil {
					return err
				}
			}
			if err := n.Barrier(); err != nil {
				return err
			}
			if n.Rank() == 1 {
				err := j.serve()
				if got := j.sockets.single.got; err == nil && got < 70*16 {
					t.Errorf("%d bytes came of 70 messages", got)
				}
				return err
			}
			messages, _ := j.reference(refUDPMsg, 16) // an error of windows only
			pings, _ := j.reference(refUDP, 100)
			for _, c := range []struct {
				name string
				op
			}{
				{"messages", messages},
				{"stream", j.streamOp(1400, 1<<13)},
				{"large", j.streamOp(maxDatagram, 1<<16)},
				{"pings", pings},
			} {
				err := c.warmUp(10, 60)
				if err == nil {
					err = errors.Join(c.run(60), c.finish())
				}
				if err != nil {
					return fmt.Errorf("%s, losing one in %v: %w", c.name, lose, err)
				}
			}
			return j.command(cmdQuit, 0, 0)
		})
		lost := int64(0)
		for _, r := range relays {
			lost += r.lost.Load()
		}
		if lost < 6 {
			t.Errorf("the relays lost %d, told to lose one in %v", lost, lose)
		}
	}
}

func TestConnectSockets(t *testing.T) {
	j := &job{sockets: &sockets{}}
	for _, text := range []string{"", "127.0.0.1", "127.0.0.1 1 2", "nowhere 1 2 3", "127.0.0.1 1 2 70000"} {
		if err := j.connectSockets(text); err == nil || strings.Contains(err.Error(), "connect:") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

package wan

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/sys"
)

var flagReal = flag.Bool("wan.real", false, "compare the model of TCP with the kernel's, some minutes")

var flagTries = flag.Int("wan.tries", 3, "how often the kernel's TCP is measured at most, until it agrees with the model")

// TestRelay sends UDP packets through a relay: they take as long as the path says
// at least, those above its MTU do not come, and flipped bits do.
func TestRelay(t *testing.T) {
	const delay = 20 * time.Millisecond
	l := NewLab(t, Path{Rate: 100e6, Delay: delay, Queue: 1 << 20, MTU: 1000})
	var socks [2]*net.UDPConn
	for i := range socks {
		err := sys.InNamespace(l.space(i), func() (err error) {
			socks[i], err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(l.Addr[i], 0)))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		defer socks[i].Close()
	}
	buf := make([]byte, 2000)
	send := func(n int, fill byte) {
		t.Helper()
		for i := range buf[:n] {
			buf[i] = fill
		}
		if _, err := socks[0].WriteTo(buf[:n], socks[1].LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	sent := int64(0)
	for round := range byte(3) {
		if round == 2 {
			l.Relay.Change(func(links [2]*Link) { links[0].Path.Corrupt = 1 })
		}
		began := time.Now()
		var n, changed int
		var from net.Addr
		for came := false; !came; { // the system may drop one
			send(1000, 99) // with its headers longer than the MTU
			send(972, round)
			sent++
			if err := socks[1].SetReadDeadline(time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			for {
				var err error
				n, from, err = socks[1].ReadFrom(buf)
				if errors.Is(err, os.ErrDeadlineExceeded) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				changed = n - bytes.Count(buf[:n], []byte{round})
				if came = changed < n/2; came { // else it is late, of another round
					break
				}
			}
		}
		if took := time.Since(began); took < delay {
			t.Errorf("round %d: took %v", round, took)
		}
		if want := int(round / 2); n != 972 || from.String() != socks[0].LocalAddr().String() || changed != want {
			t.Errorf("round %d: %d bytes from %v, %d of them changed", round, n, from, changed)
		}
	}
	if c := l.Relay.Counts(); c[0].TooLong < 1 || c[0].TooLong > sent || c[0].Packets-c[0].TooLong < 3 || c[0].Packets-c[0].TooLong > sent || c[1].Packets != 0 {
		t.Errorf("of %d packets that are too long and %d others: %+v", sent, sent, c)
	}
}

// TestRelayEnds has the relay end by itself, since nothing can be read from its
// devices: what is called then touches no file but the relay's own.
func TestRelayEnds(t *testing.T) {
	p := Path{Rate: 100e6}.Queued(1)
	r := &Relay{ended: make(chan struct{}), calls: make(chan func()), links: [2]*Link{NewLink(p, 0), NewLink(p, 1)}, start: time.Now()}
	for i := range r.tuns {
		var err error
		if r.tuns[i], err = syscall.Open(t.TempDir(), syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Pipe2(r.pipe[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	go r.run()
	<-r.ended
	var own [2]syscall.Stat_t
	for i, fd := range r.pipe {
		if err := syscall.Fstat(fd, &own[i]); err != nil {
			t.Fatalf("the relay's pipe is closed: %v", err)
		}
	}
	if own[0].Ino != own[1].Ino {
		t.Error("the descriptors of the relay's pipe are others' files")
	}
	r.Counts()
	if err := r.Close(); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("Close: %v", err)
	}
}

// kernel measures the kernel's TCP on p for d.
func kernel(t *testing.T, p Path, d time.Duration) (bits float64, again uint64, late time.Duration) {
	l := NewLab(t, p)
	b := l.StartTCP("cubic")
	time.Sleep(d) // how long the transfer lasts
	again = b.Counts().Again
	b.Stop()
	_, late = l.Relay.Late()
	return b.Rate(b.First(), b.First().Add(d)), again, late
}

// TestKernel compares the model of TCP with the kernel's. docs/distance.md has what
// was measured.
func TestKernel(t *testing.T) {
	if !*flagReal {
		t.Skip("without -wan.real, which takes minutes")
	}
	lines := "| path | kernel | sent again | model | sent again | model / kernel |\n| --- | --- | --- | --- | --- | --- |\n"
	for i, c := range []struct {
		p     Path
		queue float64
	}{
		{Path{Rate: 50e6, Delay: 500 * time.Microsecond}, 1},
		{Path{Rate: 50e6, Delay: 5 * time.Millisecond}, 1},
		{Path{Rate: 50e6, Delay: 25 * time.Millisecond}, 1},
		{Path{Rate: 200e6, Delay: 10 * time.Millisecond}, 1},
		{Path{Rate: 20e6, Delay: 50 * time.Millisecond}, 0.25},
		{Path{Rate: 20e6, Delay: 50 * time.Millisecond}, 4},
		{Path{Rate: 50e6, Delay: 100 * time.Millisecond}, 1},
		{Path{Rate: 50e6, Delay: 5 * time.Millisecond, Loss: 0.001, Seed: 1}, 1},
		{Path{Rate: 50e6, Delay: 5 * time.Millisecond, Loss: 0.01, Seed: 1}, 1},
		{Path{Rate: 50e6, Delay: 500 * time.Microsecond, Loss: 0.05, Seed: 1}, 1},
		{Path{Rate: 50e6, Delay: 500 * time.Microsecond, Loss: 0.2, Seed: 1}, 1},
	} {
		p := c.p.Queued(c.queue)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			const d = 10 * time.Second
			n := New(p)
			s, ends := BulkTCP()
			n.Flow(0, ends)
			n.Run(d)
			model := float64(s.Acked) * 8 / d.Seconds()
			var real float64
			var again uint64
			var late time.Duration
			for try := range *flagTries {
				// A machine that has other things to do makes the kernel slower.
				if r, a, l := kernel(t, p, d); try == 0 || r > real {
					real, again, late = r, a, l
				}
				if model > 0.9*real && model < 1.1*real {
					break
				}
			}
			lines += fmt.Sprintf("| %v | %s | %d | %s | %d | %.2f |\n", p, rate(real), again, rate(model), s.Again, model/real)
			t.Logf("%v: kernel %s, model %s: %.2f; packets were late by less than %v", p, rate(real), rate(model), model/real, late)
			if p.Loss == 0 && (model < 0.85*real || model > 1.15*real) {
				t.Errorf("the model is %.2f of the kernel", model/real)
			}
		})
	}
	t.Logf("\n%s", lines)
}

package sys

import (
	"net"
	"sync"
	"testing"
	"time"
)

// detached is a UDP socket that the runtime's poller does not know, and where it is.
func detached(t *testing.T) (*Waiter, net.Addr) {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var w *Waiter
	var errIn error
	if err := raw.Control(func(fd uintptr) {
		var own uintptr
		if own, errIn = Detach(fd); errIn == nil {
			w, errIn = NewWaiter(own)
		}
	}); err != nil || errIn != nil {
		t.Fatal(err, errIn)
	}
	t.Cleanup(w.Close)
	return w, conn.LocalAddr()
}

// TestWaiter: each of the reasons ends a wait, and what has come stays until it is
// received.
func TestWaiter(t *testing.T) {
	w, at := detached(t)
	w.Wake()
	w.Wait(-1) // one before it counts
	w.Wait(time.Millisecond)
	done := make(chan struct{})
	go func() { defer close(done); w.Wait(-1) }()
	w.Wake()
	<-done

	c, err := net.Dial("udp4", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	for !Readable(uintptr(w.fd)) {
		w.Wait(-1)
	}
	w.Wait(-1) // it is still there
}

// TestWaiterClose: Close ends waits that have begun and those that begin later, and
// a wake meanwhile does no harm.
func TestWaiterClose(t *testing.T) {
	for range 200 {
		w, _ := detached(t)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for range 3 {
					w.Wait(-1)
				}
			})
			wg.Go(func() { w.Wake() })
		}
		wg.Go(w.Close)
		wg.Go(w.Close)
		wg.Wait()
	}
}

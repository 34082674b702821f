//go:build ignore

// Sockets ends with status 1 if this machine has no UDP or TCP sockets on its
// loopback interface, and says why.
package main

import (
	"fmt"
	"net"
	"os"
)

func main() {
	p, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err == nil {
		_, err = p.WriteTo([]byte("x"), p.LocalAddr())
	}
	if err == nil {
		_, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "sockets: %v\n", err)
		os.Exit(1)
	}
}

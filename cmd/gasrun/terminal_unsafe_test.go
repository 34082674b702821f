package main

import (
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// openTerminal makes a pseudo-terminal (pty(7)): the side of the terminal,
// and the side of the programs that run on it.
func openTerminal() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	var unlocked, n int32
	for _, c := range []struct {
		what uintptr
		word *int32
	}{{syscall.TIOCSPTLCK, &unlocked}, {syscall.TIOCGPTN, &n}} {
		if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), c.what, uintptr(unsafe.Pointer(c.word))); e != 0 {
			master.Close()
			return nil, nil, e
		}
	}
	if slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(n)), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		master.Close()
		return nil, nil, err
	}
	return master, slave, nil
}

package sys

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// waitsBy is how a system call names the files that it waits for.
type waitsBy int

const (
	byFirst waitsBy = iota + 1 // the first argument is the file
	byList                     // a list of struct pollfd, and its length
	bySet                      // how many bits the sets have, and the set of files to read
	byEpoll                    // the first argument is an epoll file
)

// waits are the system calls that wait for a pipe to be readable, by their numbers
// (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h).
var waits = map[string]map[int]waitsBy{
	"amd64": {
		0: byFirst, 19: byFirst, 275: byFirst, 276: byFirst, // read, readv, splice, tee
		7: byList, 271: byList, 23: bySet, 270: bySet, // poll, ppoll, select, pselect6
		232: byEpoll, 281: byEpoll, 441: byEpoll, // epoll_wait, epoll_pwait, epoll_pwait2
	},
	"arm64": {
		63: byFirst, 65: byFirst, 76: byFirst, 77: byFirst, // read, readv, splice, tee
		73: byList, 72: bySet, // ppoll, pselect6
		22: byEpoll, 441: byEpoll, // epoll_pwait, epoll_pwait2
	},
}

// sendfile has its source second.
var sendfile = map[string]int{"amd64": 40, "arm64": 71}

// Awaits reports whether a thread of the process, or of those that descend from it, waits
// for the pipe with that inode to be readable. It also does if that cannot be known: where
// the system does not tell what call a thread is in (proc(5), /proc/PID/syscall), and for
// processes that need not wait in one, since they have made the pipe non-blocking or have
// an io_uring(7).
func Awaits(pid int, inode uint64) bool {
	pipe := fmt.Sprintf("pipe:[%d]", inode)
	todo := []int{pid}
	for n := 0; n < len(todo) && n < 1<<10; n++ {
		process := fmt.Sprintf("/proc/%d", todo[n])
		if awaits(process, pipe) {
			return true
		}
		lists, _ := filepath.Glob(process + "/task/*/children")
		for _, list := range lists {
			b, _ := os.ReadFile(list)
			for _, child := range strings.Fields(string(b)) {
				if p, err := strconv.Atoi(child); err == nil {
					todo = append(todo, p)
				}
			}
		}
	}
	return false
}

// awaits is Awaits for one process.
func awaits(process, pipe string) bool {
	fds, err := os.ReadDir(process + "/fd")
	if err != nil {
		return !ended(process)
	}
	open := map[int]bool{} // the pipe
	uring := false
	for _, e := range fds {
		name, _ := os.Readlink(process + "/fd/" + e.Name())
		fd, _ := strconv.Atoi(e.Name())
		switch {
		case name == "anon_inode:[io_uring]":
			uring = true
		case name == pipe:
			open[fd] = true
			if flags := infoField(process, e.Name(), "flags:"); flags != "" {
				n, err := strconv.ParseUint(flags, 8, 64)
				const nonblock = 0o4000 // O_NONBLOCK of asm-generic/fcntl.h
				uring = uring || err != nil || n&nonblock != 0
			}
		}
	}
	if len(open) == 0 {
		return false
	}
	if uring {
		return true
	}
	tasks, err := filepath.Glob(process + "/task/*/syscall")
	if err != nil {
		return true
	}
	for _, task := range tasks {
		b, err := os.ReadFile(task)
		if err != nil && !ended(filepath.Dir(task)) {
			return true
		}
		if err == nil && waitsFor(process, string(b), open) {
			return true
		}
	}
	return false
}

// ended reports whether the process or thread of a directory of /proc has ended, perhaps
// without having been reaped.
func ended(dir string) bool {
	f := statFields(dir)
	return len(f) == 0 || f[0] == "Z" || f[0] == "X"
}

// waitsFor reports whether a thread waits for one of the files by a line of its
// /proc/PID/syscall: "running", or a number and six arguments.
func waitsFor(process, line string, open map[int]bool) bool {
	words := strings.Fields(line)
	if len(words) < 7 {
		return false
	}
	number, err := strconv.Atoi(words[0])
	if err != nil || number < 0 {
		return false
	}
	known := waits[runtime.GOARCH]
	if known == nil {
		return true
	}
	address := func(i int) int64 {
		n, _ := strconv.ParseInt(strings.TrimPrefix(words[1+i], "0x"), 16, 64)
		return n
	}
	argument := func(i int) int { return int(uint32(address(i))) }
	if number == sendfile[runtime.GOARCH] {
		return open[argument(1)]
	}
	switch known[number] {
	case byFirst:
		return open[argument(0)]
	case byList: // poll(2)
		const size = 8 // int fd, short events, short revents
		list, err := memory(process, address(0), size*argument(1))
		for ; len(list) >= size; list = list[size:] {
			if open[int(binary.NativeEndian.Uint32(list))] {
				return true
			}
		}
		return err != nil
	case bySet: // select(2)
		if argument(0) == 0 || address(1) == 0 {
			return false
		}
		set, err := memory(process, address(1), (argument(0)+7)/8)
		for fd := range open {
			if fd/8 < len(set) && set[fd/8]>>(fd%8)&1 != 0 {
				return true
			}
		}
		return err != nil
	case byEpoll: // proc_pid_fdinfo(5)
		for fd := range open {
			if infoField(process, strconv.Itoa(argument(0)), fmt.Sprintf("tfd: %8d", fd)) != "" {
				return true
			}
		}
	}
	return false
}

// memory reads what a process has at an address.
func memory(process string, at int64, size int) ([]byte, error) {
	const most = 1 << 20
	f, err := os.Open(process + "/mem")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, min(size, most))
	_, err = f.ReadAt(b, at)
	return b, err
}

// infoField returns the value of key in the description of a file of a process, "" if there
// is none.
func infoField(process, fd, key string) string {
	b, _ := os.ReadFile(process + "/fdinfo/" + fd)
	for line := range strings.SplitSeq(string(b), "\n") {
		if rest, ok := strings.CutPrefix(line, key); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

package sys

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Room is how much of something the system still lets this process have, and
// which of its limits says so. All that argon asks of limits is in this file and in
// groups_linux.go.
type Room struct {
	Free  int64  // what is left: bytes, or how many; math.MaxInt64 if nothing bounds it
	Limit int64  // what there is in all
	What  string // the limit: "the memory group /a (memory.max)"
	Knob  string // what sets it
	Count bool   // not bytes
}

var boundless = Room{Free: math.MaxInt64}

// Bounded reports whether there is a limit at all.
func (r Room) Bounded() bool { return r.Free != math.MaxInt64 }

// String names the limit, its value, the rest of it and its setting.
func (r Room) String() string {
	n := Amount
	if r.Count {
		n = func(n int64) string { return strconv.FormatInt(n, 10) }
	}
	knob := ""
	if r.Knob != "" {
		knob = " (" + r.Knob + ")"
	}
	if r.Limit == r.Free {
		return r.What + " allows " + n(r.Limit) + knob
	}
	return r.What + " allows " + n(r.Limit) + ", of which " + n(r.Free) + " are left" + knob
}

// Narrowest is that of rooms for the same thing which decides.
func Narrowest(first Room, rooms ...Room) Room {
	for _, r := range rooms {
		if r.Free < first.Free {
			first = r
		}
	}
	return first
}

// Amount writes bytes for people.
func Amount(n int64) string {
	for i, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if v := float64(n) / float64(int64(1)<<(40-10*i)); v >= 1 {
			if v < 10 && v != math.Trunc(v) {
				return fmt.Sprintf("%.1f %s", v, unit)
			}
			return fmt.Sprintf("%.0f %s", v, unit)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// MemoryRoom is how much memory the machine and the control groups of this process
// leave. soft counts limits, too, that slow processes down instead of ending them:
// a default heeds them, a user's own value need not.
func MemoryRoom(soft bool) Room { return memoryRoom("/", soft) }

func memoryRoom(root string, soft bool) Room {
	return Narrowest(groupMemory(root, soft), machineMemory(root))
}

// machineMemory is MemAvailable of /proc/meminfo (proc_meminfo(5)), or what sysinfo(2)
// calls free where there is no /proc.
func machineMemory(root string) Room {
	r := Room{What: "this machine's memory", Knob: "end other programs, or take a larger machine"}
	f, err := os.Open(path.Join(root, "proc/meminfo"))
	if err != nil {
		var si unix.Sysinfo_t
		if unix.Sysinfo(&si) != nil {
			return boundless
		}
		r.Free, r.Limit = int64(si.Freeram)*int64(si.Unit), int64(si.Totalram)*int64(si.Unit)
		return r
	}
	defer f.Close()
	kb := map[string]int64{}
	for s := bufio.NewScanner(f); s.Scan(); {
		name, rest, _ := strings.Cut(s.Text(), ":")
		if n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 53); err == nil {
			kb[name] = n
		}
	}
	if _, ok := kb["MemAvailable"]; !ok {
		return boundless
	}
	r.Free, r.Limit = kb["MemAvailable"]<<10, kb["MemTotal"]<<10
	if strings.TrimSpace(readText(path.Join(root, "proc/sys/vm/overcommit_memory"))) == "2" {
		limit := kb["CommitLimit"] << 10
		r = Narrowest(r, Room{
			Free: max(limit-kb["Committed_AS"]<<10, 0), Limit: limit, Knob: "vm.overcommit_ratio",
			What: "what this machine may promise (CommitLimit, vm.overcommit_memory=2)",
		})
	}
	return r
}

// Resident is how much memory this process has that is not swapped out; 0 where there is no /proc.
func Resident() int64 {
	f := strings.Fields(readText("/proc/self/statm")) // size resident ... (proc_pid_statm(5))
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.ParseInt(f[1], 10, 64)
	return n * int64(os.Getpagesize())
}

// AddressRoom is how many bytes this process may still map: RLIMIT_AS and, of private
// memory, RLIMIT_DATA (getrlimit(2)), less what it has mapped.
func AddressRoom(private bool) Room {
	room := boundless
	pages := strings.Fields(readText("/proc/self/statm")) // size ... data, the first and the sixth (proc_pid_statm(5))
	for _, l := range []struct {
		resource, column int
		what, knob       string
		counts           bool
	}{
		{unix.RLIMIT_AS, 0, "the limit of a process's addresses", "ulimit -v", true},
		{unix.RLIMIT_DATA, 5, "the limit of a process's data", "ulimit -d", private},
	} {
		limit, ok := rlimit(l.resource)
		if !ok || !l.counts {
			continue
		}
		taken := limit / 2 // a guess, where there is no /proc
		if len(pages) > l.column {
			n, _ := strconv.ParseInt(pages[l.column], 10, 64)
			taken = n * int64(os.Getpagesize())
		}
		room = Narrowest(room, Room{Free: max(limit-taken, 0), Limit: limit, What: l.what, Knob: l.knob})
	}
	return room
}

// StartError is why a process that has just begun can hardly go on: what Go's runtime
// needs for a heap, in arenas of 64 MiB, and for threads, is an error of this text then and
// a crash without it later. Threads that C starts have stacks, and heaps of 64 MiB.
func StartError() error {
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		return fmt.Errorf("there is no /proc here (%w): mount it, as bwrap --proc /proc and unshare --mount-proc do", err)
	}
	least, threads := int64(160<<20), int64(8)
	if withC {
		least = 256 << 20
	}
	if r := AddressRoom(true); r.Free < least {
		return fmt.Errorf("the runtime of Go needs %s or more: %v", Amount(least), r)
	}
	if r := TaskRoom(); r.Free < threads {
		return fmt.Errorf("the runtime of Go needs %d threads or more: %v", threads, r)
	}
	return nil
}

// FileRoom is how large a file may become that this process writes or lengthens
// (RLIMIT_FSIZE).
func FileRoom() Room {
	limit, ok := rlimit(unix.RLIMIT_FSIZE)
	if !ok {
		return boundless
	}
	return Room{Free: limit, Limit: limit, What: "the limit of a file's size", Knob: "ulimit -f"}
}

// DirectoryRoom is how much the file system of dir can still take.
func DirectoryRoom(dir string) (Room, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Room{}, err
	}
	return systemRoom(&st, "the file system of "+dir), nil
}

// FileSystemRoom is how much the file system can still take that fd lies in: that of
// a memfd has no limit of its own.
func FileSystemRoom(fd uintptr) Room {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(fd), &st); err != nil {
		return boundless
	}
	return systemRoom(&st, "the file system of the job's memory")
}

func systemRoom(st *unix.Statfs_t, what string) Room {
	if st.Blocks == 0 { // a tmpfs without a size (tmpfs(5))
		return boundless
	}
	return Room{
		Free: int64(st.Bavail) * int64(st.Bsize), Limit: int64(st.Blocks) * int64(st.Bsize), What: what,
		Knob: "docker run --shm-size, mount -o remount,size=; without ARGON_SHM_DIR memory has no size of its own",
	}
}

// FilesRoom is how many files this process may open still.
func FilesRoom() Room {
	limit := FileLimit()
	if limit > math.MaxInt64 {
		return boundless
	}
	return Room{
		Free: max(int64(limit)-int64(len(Descriptors())), 0), Limit: int64(limit), Count: true,
		What: "the limit of a process's open files", Knob: "ulimit -n",
	}
}

// FileLimit is how many files this process may have open (RLIMIT_NOFILE). A Go program
// has raised its own to the hard limit when it starts (package os).
func FileLimit() uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return math.MaxUint64
	}
	return l.Cur
}

// LockLimit is how many bytes this process may lock in all (RLIMIT_MEMLOCK;
// processes with CAP_IPC_LOCK may lock more); 2^64-1 for no limit.
func LockLimit() uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l) != nil {
		return 0
	}
	return l.Cur
}

// TaskRoom is how many more processes and threads there may be: RLIMIT_NPROC, which
// counts all of a user and does not hold for CAP_SYS_RESOURCE and CAP_SYS_ADMIN
// (getrlimit(2)), and the pids groups of this process.
func TaskRoom() Room {
	room := groupTasks("/")
	const many = 1 << 14 // which no user has, but for a fault: not worth the counting
	limit, ok := rlimit(unix.RLIMIT_NPROC)
	if !ok || limit > many || os.Getuid() == 0 || capable(unix.CAP_SYS_RESOURCE) || capable(unix.CAP_SYS_ADMIN) {
		return room
	}
	return Narrowest(room, Room{
		Free: max(limit-tasksOf(uint32(os.Getuid())), 0), Limit: limit, Knob: "ulimit -u",
		What: "the limit of the user's processes and threads", Count: true,
	})
}

// tasksOf counts the threads of a user's processes that can be seen.
func tasksOf(uid uint32) (n int64) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		var st unix.Stat_t // a directory has a link for each entry that is one, and two more
		if unix.Stat("/proc/"+e.Name()+"/task", &st) == nil && st.Uid == uid {
			n += max(int64(st.Nlink)-2, 1)
		}
	}
	return n
}

// rlimit is the soft limit of a resource; ok is false if there is none.
func rlimit(resource int) (limit int64, ok bool) {
	var l unix.Rlimit
	if unix.Getrlimit(resource, &l) != nil || l.Cur > math.MaxInt64 {
		return 0, false
	}
	return int64(l.Cur), true
}

// unmapped is the error of a mapping of size bytes with the limit that it comes from,
// if that is known.
func unmapped(size int64, private bool, err error) error {
	if errors.Is(err, unix.ENOMEM) {
		if r := AddressRoom(private); r.Free < size {
			return fmt.Errorf("mmap of %d bytes: %w: %v", size, err, r)
		}
	}
	return fmt.Errorf("mmap of %d bytes: %w", size, err)
}

// tooLarge is the error of lengthening a file to size bytes with the limit that it
// comes from.
func tooLarge(size int64, err error) error {
	if r := FileRoom(); errors.Is(err, unix.EFBIG) && r.Free < size {
		return fmt.Errorf("%w: %v", err, r)
	}
	return err
}

func readText(name string) string {
	b, _ := os.ReadFile(name)
	return string(b)
}

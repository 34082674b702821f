// Package lent shares what the jobs of a host may lock in memory among them: the registration budget that a daemon
// divides in Schindler et al., without a daemon. Each rank that locks memory is a [Member] of a table, a file
// on a tmpfs. It has a minimum of its own; the rest is lent by need, as evenly as the needs allow, and called back
// when others need it: together members never have more than the limit.
//
// A member is alive as long as its process has the file open: it holds a lock of an open file description on a byte of its own
// (F_OFD_SETLK, fcntl(2)), which the kernel gives up after it has unlocked the memory of a process that ends (exit_mm before
// exit_files, kernel/exit.c). What the table says of one that is not is nothing. Another such lock is held while the table is
// changed; a record is written by one write, so that a process may be killed at any moment. Nothing is told: members look
// again every [Look]. A member that is stopped (SIGSTOP) gives nothing back.
package lent

import (
	"cmp"
	"encoding/binary"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
)

// Look is how often members look at what others want.
const Look = 200 * time.Millisecond

const (
	record = 32      // bytes of a member in the file
	most   = 1 << 10 // members
	locks  = 1 << 30 // where the bytes are that are locked: of the table, then of members

	// Commands of fcntl(2) that package syscall does not name, the same for all architectures.
	ofdGet, ofdSet, ofdWait = 36, 37, 38
)

// A Member has a part of the limit. Its methods may be called by any goroutine.
type Member struct {
	mu    sync.Mutex // locks are the file's, not the goroutine's
	f     *os.File
	over  chan struct{}
	place int
	all   [most]entry // scratch
}

// entry is what the table says of a member: bytes.
type entry struct{ has, wants, least, limit uint64 }

// Join makes a member of the table in the file path, which is made if there is none. Members agree on the limit, and their least
// together is not more: else, and if there is no room for another member, it is an error. look, if not nil, is called every Look.
func Join(path string, limit, least uint64, look func()) (*Member, error) {
	if least > limit {
		return nil, errs.BadArg("lent: a minimum of %d bytes of %d that may be locked", least, limit)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, errs.Resource("lent: the table of what may be locked: %v", err)
	}
	m := &Member{f: f, place: -1, over: make(chan struct{})}
	err = m.locked(func(all []entry) error {
		sum := least
		for i, e := range all {
			switch {
			case e.limit == 0:
				if m.place < 0 {
					m.place = i
				}
			case e.limit != limit:
				return errs.BadArg("lent: %d bytes may be locked on this host, other jobs say %d (%s)", limit, e.limit, path)
			default:
				sum += e.least
			}
		}
		switch {
		case m.place < 0 && len(all) == most:
			return errs.Resource("lent: %d ranks share what may be locked: there is room for no more (%s)", most, path)
		case sum > limit:
			return errs.Resource("lent: the minimum of all ranks of this host is %d bytes with this one's, of %d that may be locked (%s)", sum, limit, path)
		case m.place < 0:
			m.place = len(all)
		}
		if err := m.fcntl(ofdSet, syscall.F_WRLCK, m.place); err != nil {
			return err
		}
		return m.write(entry{limit: limit, least: least})
	})
	if err != nil {
		f.Close()
		return nil, err
	}
	if look != nil {
		go m.watch(look)
	}
	return m, nil
}

func (m *Member) watch(look func()) {
	tick := time.NewTicker(Look)
	defer tick.Stop()
	for {
		select {
		case <-m.over:
			return
		case <-tick.C:
			look()
		}
	}
}

// Balance says that has bytes are locked and wants would be, and returns how many may be: at least the least, if that is wanted and
// others have given back what they were called for. If that is more than has, it is the member's from now on. If it is
// less, the rest is called back: the member unlocks it and calls again.
func (m *Member) Balance(has, wants uint64) (may uint64, err error) {
	err = m.locked(func(all []entry) error {
		e := &all[m.place]
		e.has, e.wants = has, wants
		may = min(wants, share(all, m.place))
		if may > has {
			left := e.limit
			for _, e := range all {
				left -= min(left, e.has)
			}
			may = has + min(may-has, left)
		}
		e.has = max(has, may)
		return m.write(*e)
	})
	return may, err
}

// Leave ends the membership: nothing is locked any more. look may be under way still.
func (m *Member) Leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.over)
	_ = m.f.Close()
}

// share is how much the member at i may have if all have what they may: its least, and of the rest an equal part to each,
// but to none more than it needs.
func share(all []entry, i int) uint64 {
	needs := make([]uint64, 0, len(all))
	rest := all[i].limit
	for _, e := range all {
		rest -= min(rest, e.least)
		if wants := max(e.has, e.wants); wants > e.least {
			needs = append(needs, wants-e.least)
		}
	}
	slices.SortFunc(needs, cmp.Compare)
	level := rest
	for k, need := range needs {
		level = rest / uint64(len(needs)-k)
		if need > level {
			break
		}
		rest -= need
	}
	return all[i].least + level
}

// locked calls f with what the table says of members that are alive, while no other member changes it.
func (m *Member) locked(f func(all []entry) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fcntl(ofdWait, syscall.F_WRLCK, -1); err != nil {
		return err
	}
	defer func() { _ = m.fcntl(ofdSet, syscall.F_UNLCK, -1) }()
	var b [most * record]byte
	n, _ := m.f.ReadAt(b[:], 0) // an error is the end of the file
	all := m.all[:n/record]
	for i := range all {
		w := func(k int) uint64 { return binary.LittleEndian.Uint64(b[i*record+8*k:]) }
		all[i] = entry{w(0), w(1), w(2), w(3)}
		if i != m.place && all[i].limit != 0 && !m.alive(i) {
			all[i] = entry{}
		}
	}
	return f(all)
}

func (m *Member) write(e entry) error {
	var b [record]byte
	for k, v := range [...]uint64{e.has, e.wants, e.least, e.limit} {
		binary.LittleEndian.PutUint64(b[8*k:], v)
	}
	if _, err := m.f.WriteAt(b[:], int64(m.place*record)); err != nil {
		return errs.Resource("lent: the table of what may be locked: %v", err)
	}
	return nil
}

// alive reports whether another open file description holds the byte of place i.
func (m *Member) alive(i int) bool {
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Start: int64(locks + 1 + i), Len: 1}
	err := m.control(func(fd uintptr) error { return syscall.FcntlFlock(fd, ofdGet, &l) })
	return err != nil || l.Type != syscall.F_UNLCK
}

func (m *Member) fcntl(cmd int, kind int16, place int) error {
	l := syscall.Flock_t{Type: kind, Start: int64(locks + 1 + place), Len: 1}
	return m.control(func(fd uintptr) error { return syscall.FcntlFlock(fd, cmd, &l) })
}

func (m *Member) control(f func(fd uintptr) error) error {
	c, err := m.f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err = c.Control(func(fd uintptr) {
		for failed = syscall.EINTR; failed == syscall.EINTR; {
			failed = f(fd)
		}
	}); err == nil {
		err = failed
	}
	if err != nil {
		return errs.Resource("lent: the table of what may be locked: %v", err)
	}
	return nil
}

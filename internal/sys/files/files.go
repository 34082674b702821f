// Package files opens the files that a program names: those of the operating system or, where ARGON_SIM_FILES says so, copies of
// them in memory, which begin and end with the process. So whatever a simulated job does to files, the next one
// with the same seed finds what this one has found.
//
// A file that has a copy is one of memfd_create(2), which every call on files takes for what it is; files that are
// only read have none, nor do devices and pipes.
package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/argon-go/argon/internal/sys"
)

// copies are those of the process, by their absolute names; nil for a file that the program has removed.
var copies struct {
	sync.Mutex
	all map[string]*os.File
}

// inMemory reports whether files are copied.
func inMemory() bool { return os.Getenv("ARGON_SIM_FILES") == "memory" }

// Open is os.OpenFile.
func Open(name string, flag int, perm os.FileMode) (*os.File, error) {
	if !inMemory() {
		return os.OpenFile(name, flag, perm)
	}
	copies.Lock()
	defer copies.Unlock()
	path, c, known, err := find(name)
	if err != nil {
		return nil, err
	}
	const changes = os.O_WRONLY | os.O_RDWR | os.O_CREATE | os.O_TRUNC
	if !known {
		s, err := os.Stat(path)
		switch {
		case err == nil && (flag&changes == 0 || !s.Mode().IsRegular()):
			return os.OpenFile(name, flag, perm)
		case err == nil && flag&(os.O_CREATE|os.O_EXCL) != os.O_CREATE|os.O_EXCL:
			if err := syscall.Access(path, 2); err != nil { // access(2): W_OK
				return nil, &fs.PathError{Op: "open", Path: name, Err: err}
			}
			if c, err = duplicate(path); err != nil {
				return nil, err
			}
		case err == nil:
			return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EEXIST}
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	switch {
	case c != nil && known && flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EEXIST}
	case c == nil && flag&os.O_CREATE == 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOENT}
	case c == nil:
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return nil, err
		}
		if c, err = sys.Memfd(filepath.Base(path)); err != nil {
			return nil, err
		}
	}
	copies.all[path] = c
	return os.OpenFile(place(c), flag&^(os.O_CREATE|os.O_EXCL), 0)
}

// find is the copy of a file.
func find(name string) (path string, c *os.File, known bool, err error) {
	if copies.all == nil {
		copies.all = map[string]*os.File{}
	}
	path, err = filepath.Abs(name)
	c, known = copies.all[path]
	return path, c, known, err
}

// duplicate is a copy of a file of the operating system.
func duplicate(path string) (*os.File, error) {
	from, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	c, err := sys.Memfd(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(c, from); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Path is where a file is that has that name: of a copy a name of its own, of one that was removed none.
func Path(name string) string {
	if !inMemory() {
		return name
	}
	copies.Lock()
	defer copies.Unlock()
	switch _, c, known, _ := find(name); {
	case !known:
		return name
	case c == nil:
		return ""
	default:
		return place(c)
	}
}

// place is a name by which a copy is opened again, with a description of its own (proc(5)).
func place(c *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(c.Fd())) }

// Remove is os.Remove.
func Remove(name string) error {
	if !inMemory() {
		return os.Remove(name)
	}
	return Unlink(name)
}

// Unlink is unlink(2).
func Unlink(name string) error {
	if !inMemory() {
		return syscall.Unlink(name)
	}
	copies.Lock()
	defer copies.Unlock()
	path, c, known, err := find(name)
	if err != nil {
		return err
	}
	if !known {
		s, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if s.IsDir() {
			return &fs.PathError{Op: "remove", Path: name, Err: syscall.EISDIR}
		}
	} else if c == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOENT}
	} else {
		c.Close() // those that have it open have descriptions of their own
	}
	copies.all[path] = nil
	return nil
}

// Truncate is truncate(2).
func Truncate(name string, n int64) error {
	if !inMemory() {
		return syscall.Truncate(name, n)
	}
	f, err := Open(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(n)
}

// Chmod is chmod(2). Of a folder, which has no copy, it changes the operating system's.
func Chmod(name string, mode uint32) error {
	if !inMemory() {
		return syscall.Chmod(name, mode)
	}
	copies.Lock()
	defer copies.Unlock()
	path, c, known, err := find(name)
	switch {
	case err != nil:
		return err
	case !known:
		if s, err := os.Stat(path); err != nil || !s.Mode().IsRegular() {
			return syscall.Chmod(path, mode)
		}
		if c, err = duplicate(path); err != nil {
			return err
		}
		copies.all[path] = c
	case c == nil:
		return syscall.ENOENT
	}
	return syscall.Fchmod(int(c.Fd()), mode)
}

// Rename is rename(2).
func Rename(from, to string) error {
	if !inMemory() {
		return syscall.Rename(from, to)
	}
	copies.Lock()
	defer copies.Unlock()
	path, c, known, err := find(from)
	target, old, _, failed := find(to)
	switch {
	case err != nil || failed != nil:
		return errors.Join(err, failed)
	case !known:
		if c, err = duplicate(path); err != nil {
			return err
		}
	case c == nil:
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: syscall.ENOENT}
	}
	if _, err = os.Stat(filepath.Dir(target)); err == nil {
		if s, _ := os.Stat(target); s != nil && s.IsDir() {
			err = &os.LinkError{Op: "rename", Old: from, New: to, Err: syscall.EISDIR}
		}
	}
	if err != nil || target == path {
		if !known {
			c.Close()
		}
		return err
	}
	if old != nil {
		old.Close()
	}
	copies.all[path], copies.all[target] = nil, c
	return nil
}

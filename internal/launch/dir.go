package launch

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/argon-go/argon/internal/errs"
)

// deletedDir is the error of a working directory that has been deleted under this process,
// nil if it is there. Its name is no longer any, so that ranks could not find a file by a
// relative path, nor hosts the directory. instead is what else helps.
func deletedDir(instead string) error {
	_, err := os.Getwd()
	if !errors.Is(err, syscall.ENOENT) {
		return nil
	}
	return errs.BadArg("launch: the working directory %s has been deleted: change to one that is there, or %s", workingDir(), instead)
}

// workingDir is the name of this process's working directory, also of one that it may not
// search, as one of root's after a change of user.
func workingDir() string {
	if dir, err := os.Getwd(); err == nil {
		return dir
	}
	name, err := os.Readlink("/proc/self/cwd")
	if err != nil {
		return "."
	}
	return strings.TrimSuffix(name, " (deleted)") // proc_pid_cwd(5)
}

// usableDir is the error of a directory that processes cannot be started in.
func usableDir(dir string) error {
	const search = 1 // X_OK
	fi, err := os.Stat(dir)
	switch {
	case err != nil:
		return err
	case !fi.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	}
	if err := syscall.Access(dir, search); err != nil {
		return fmt.Errorf("%s cannot be entered: %w", dir, err)
	}
	return nil
}

// startError is err, with which the system has refused to run path in dir ("" for this
// process's), as the error of what it is about: the system has one number for a directory,
// a program and the interpreter that a program names.
func startError(path, dir string, err error) error {
	if dir != "" {
		if err := usableDir(dir); err != nil {
			return fmt.Errorf("working directory (-wdir): %w", err)
		}
	}
	if _, there := os.Stat(path); there == nil && errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("%s: the interpreter that it names is not there (that of its #! line, or of its ELF header): %w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

package boot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/claim"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
)

// inherited are the variables with the numbers of the files that gasrun leaves a rank.
var inherited = []string{jobenv.SegFD, jobenv.CtlFD, jobenv.JobKeyFile, jobenv.SimStatus}

// settled is the result of settle.
type settled struct {
	err    error  // nothing can run here
	nested string // not "": a rank has started this process; which
	key    string // the job's key, if its file may not be opened again here
}

// settle finds out, once in a process and before anything else is read of the
// environment, whether the place that gasrun has left there is this process's: it claims
// the rank, and gets the job's files with it. If the place is another process's it is
// removed, and this process is a job of its own.
var settle = sync.OnceValue(func() (s settled) {
	address := os.Getenv(jobenv.JobSocket)
	rank, _ := strconv.Atoi(os.Getenv(jobenv.Rank)) // FindPlace says what is wrong; a simulated job has none
	if by, nested := jobenv.Nested(); nested {
		if address != "" {
			_, _ = claim.Ask(address, rank, true) // for gasrun -v
		}
		return leave(by + " has started it")
	}
	if address == "" {
		return s
	}
	g, err := claim.Ask(address, rank, false)
	switch {
	case errors.Is(err, claim.ErrUnreachable):
		s.err = complete(err)
	case err != nil:
		s.err = err
	case g.Nested != "":
		return leave(g.Nested)
	default:
		s.key, s.err = adopt(g.Files)
	}
	if s.err == nil {
		jobenv.Take()
	}
	return s
})

// leave makes this process a job of its own.
func leave(why string) settled {
	jobenv.Leave()
	return settled{nested: why}
}

// adopted keeps the files that are open on behalf of numbers in the environment.
var adopted []*os.File

// adopt sets the variables that are the keys of files to their descriptors, for files that a
// process between the launcher and this one has closed or replaced. key is the
// job's key, if its file belongs to another user.
func adopt(files map[string]*os.File) (key string, err error) {
	for name, f := range files {
		text := os.Getenv(name)
		number, prefix := strings.CutPrefix(text, jobenv.FDFolder)
		if fd, err := strconv.Atoi(number); err == nil && same(fd, int(f.Fd())) {
			defer f.Close()
		} else if err != nil && text != "" { // a process on the way has named another file
			f.Close()
			continue
		} else {
			adopted = append(adopted, f)
			prefix = prefix || name == jobenv.JobKeyFile
			if text = strconv.Itoa(int(f.Fd())); prefix {
				text = jobenv.FDFolder + text
			}
			if err := os.Setenv(name, text); err != nil {
				return "", err
			}
		}
		if name != jobenv.JobKeyFile {
			continue
		}
		if again, err := os.Open(text); err == nil {
			again.Close()
			continue
		}
		b, err := io.ReadAll(io.NewSectionReader(f, 0, 2*jobkey.Size+1))
		if err != nil {
			return "", errs.Resource("boot: cannot read the job's key: %v", err)
		}
		key = string(b)
	}
	return key, nil
}

// same reports whether two descriptors are of one file.
func same(a, b int) bool {
	var x, y syscall.Stat_t
	return a != b && syscall.Fstat(a, &x) == nil && syscall.Fstat(b, &y) == nil && x.Dev == y.Dev && x.Ino == y.Ino
}

// complete is the error of files that gasrun has left this process and that are no longer
// there, or others, if it can be reached no more: why. It is nil if all are there.
func complete(why error) error {
	var all []string
	lost := false
	for _, name := range inherited {
		number, prefix := strings.CutPrefix(os.Getenv(name), jobenv.FDFolder)
		if number == "" || name == jobenv.JobKeyFile && !prefix {
			continue
		}
		kind := uint32(syscall.S_IFREG)
		if name == jobenv.CtlFD {
			kind = syscall.S_IFIFO
		}
		var st syscall.Stat_t
		fd, err := strconv.Atoi(number)
		all = append(all, number)
		lost = lost || err != nil || syscall.Fstat(fd, &st) != nil || uint32(st.Mode)&syscall.S_IFMT != kind
	}
	if !lost {
		return nil
	}
	return errs.BadArg("boot: a process between gasrun and the program has closed files of the job (%s), or put others in their place, and %v: let it pass descriptors on, "+
		"or run the program in gasrun's network namespace (docker run --network=host)", strings.Join(all, ", "), why)
}

// remark prints the result of settle, for ARGON_VERBOSEENV.
func (s *settled) remark(w io.Writer) {
	if s.nested != "" {
		fmt.Fprintf(w, "argon: %s is a job of its own: %s, and only that process has its place in the job\n", filepath.Base(os.Args[0]), s.nested)
	}
}

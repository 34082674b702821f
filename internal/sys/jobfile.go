package sys

import (
	"os"
	"strconv"
	"sync"
)

var jobFiles struct {
	sync.Mutex
	jobs map[string]int // that have opened a file, by its name
}

// OpenForJob opens a file to which all ranks of a job append: name or, for further jobs of this process, name.2, .3, .... It makes the file,
// or empties it, unless the launcher has begun it, which it does for the first job alone; begun reports that of the file that was opened.
// Any goroutine may call it.
func OpenForJob(name string, launched bool) (f *os.File, begun bool, err error) {
	jobFiles.Lock()
	if jobFiles.jobs == nil {
		jobFiles.jobs = map[string]int{}
	}
	jobFiles.jobs[name]++
	k := jobFiles.jobs[name]
	jobFiles.Unlock()
	if k > 1 {
		name += "." + strconv.Itoa(k)
	}
	mode := os.O_RDWR | os.O_APPEND
	if begun = launched && k == 1; !begun {
		mode |= os.O_CREATE | os.O_TRUNC
	}
	f, err = os.OpenFile(name, mode, 0o666)
	return f, begun, err
}

package launch

import (
	"bytes"
	"encoding/gob"

	"github.com/argon-go/argon/internal/job/jobenv"
)

// A task describes the ranks that a deputy starts: those of one host.
type task struct {
	ID      string   // of the job
	Host    string   // ARGON_HOST of the ranks, "" for none
	Conduit string   // that they join
	Program string   // argv[0]
	Path    string   // of the executable
	Digest  string   // SHA-256 of it in hexadecimal; "": path is to be taken as it is
	Dir     string   // working directory
	Iface   string   // see Config.Iface
	Key     string   // of the job, revealed
	Temp    string   // see Config.TempDir
	Args    []string // after argv[0]
	Env     []string // what ranks have beyond the deputy's environment
	Servers []string // addresses of the rendezvous, best one first

	Size, First, Count int    // ranks of the job; those of this host
	Segment            uint64 // see Config.Segment
	Large              bool   // see Config.Large
	Freeze             []int
	Bind               Bind  // of what this host has; "" if Seats says where ranks run
	Seats              seats // on the launcher's machine
	DirGiven           bool  // Dir must be there
	Shared             bool  // ranks of a host share memory
	Trace              bool  // ranks write a trace, which the launcher gets
	Stdin              bool  // rank 0 is here, and there is input for it
	StdinHere          bool  // which is the file stdinFile of the deputy itself
	SSH                bool  // what ssh knows of the launcher's address is worth a try
}

// taskFrame is how many bytes a frame has at most beside the one text in it.
const taskFrame = 20

// encode is t as a frame's text. Both ends are one executable.
func (t *task) encode() []byte {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(t); err != nil {
		panic(err) // of a type that gob does not know
	}
	return b.Bytes()
}

// decode reads what encode has written; ok is false if it is something else.
func (t *task) decode(f *frame) (ok bool) {
	*t = task{}
	if !f.has(0, 1) || gob.NewDecoder(bytes.NewReader(f.texts[0])).Decode(t) != nil {
		return false
	}
	for _, r := range t.Freeze {
		if r < 0 || r >= t.Size {
			return false
		}
	}
	return t.Size >= 1 && t.Size <= jobenv.MaxRanks && t.Count >= 1 && t.First >= 0 && t.First <= t.Size-t.Count
}

// config is the job as its ranks have it.
func (t *task) config() *Config {
	c := &Config{
		Size: t.Size, Program: t.Program, Args: t.Args, Conduit: t.Conduit, Segment: t.Segment, Large: t.Large,
		Env: t.Env, Dir: t.Dir, Freeze: t.Freeze,
	}
	return c
}

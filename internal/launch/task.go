package launch

import "github.com/argon-go/argon/internal/jobenv"

// A task is what a deputy is to do: the ranks of one host.
type task struct {
	id      string   // of the job
	host    string   // ARGON_HOST of the ranks
	conduit string   // that they join
	program string   // argv[0]
	path    string   // of the executable
	digest  string   // SHA-256 of it in hexadecimal; "": path is to be taken as it is
	dir     string   // working directory
	iface   string   // see Config.Iface
	key     string   // of the job, revealed
	temp    string   // see Config.TempDir
	args    []string // after argv[0]
	env     []string // what ranks have beyond the deputy's environment
	servers []string // addresses of the rendezvous, best one first

	size, first, count int    // ranks of the job; those of this host
	segment            uint64 // see Config.Segment
	large              bool   // see Config.Large
	freeze             []int
	bind               bool // to processors
	dirGiven           bool // dir must be there
	shared             bool // ranks of a host share memory
	stdin              bool // rank 0 is here, and there is input for it
	stdinHere          bool // which is the file stdinFile of the deputy itself
	ssh                bool // what ssh knows of the launcher's address is worth a try
}

// strings are the texts of a task, lists the lists, numbers the numbers, in the
// order in which they are sent.
func (t *task) strings() []*string {
	return []*string{&t.id, &t.host, &t.conduit, &t.program, &t.path, &t.digest, &t.dir, &t.iface, &t.key, &t.temp}
}

func (t *task) lists() []*[]string { return []*[]string{&t.args, &t.env, &t.servers} }

func (t *task) numbers() []*int { return []*int{&t.size, &t.first, &t.count} }

func (t *task) flags() []*bool {
	return []*bool{&t.bind, &t.dirGiven, &t.shared, &t.stdin, &t.stdinHere, &t.ssh, &t.large}
}

// encode is t as numbers and texts of a frame.
func (t *task) encode() (nums []int64, texts [][]byte) {
	for _, s := range t.strings() {
		texts = append(texts, []byte(*s))
	}
	for _, n := range t.numbers() {
		nums = append(nums, int64(*n))
	}
	for _, f := range t.flags() {
		n := int64(0)
		if *f {
			n = 1
		}
		nums = append(nums, n)
	}
	nums = append(nums, int64(t.segment))
	for _, l := range t.lists() {
		nums = append(nums, int64(len(*l)))
		for _, s := range *l {
			texts = append(texts, []byte(s))
		}
	}
	for _, r := range t.freeze {
		nums = append(nums, int64(r))
	}
	return nums, texts
}

// decode reads what encode has written; ok is false if it is something else.
func (t *task) decode(f *frame) (ok bool) {
	nums, texts := f.nums, f.texts
	if len(nums) < len(t.numbers())+len(t.flags())+1+len(t.lists()) || len(texts) < len(t.strings()) {
		return false
	}
	next := func() int64 { n := nums[0]; nums = nums[1:]; return n }
	for _, s := range t.strings() {
		*s, texts = string(texts[0]), texts[1:]
	}
	for _, n := range t.numbers() {
		*n = int(next())
	}
	for _, b := range t.flags() {
		n := next()
		if n != 0 && n != 1 {
			return false
		}
		*b = n == 1
	}
	t.segment = uint64(next())
	for _, l := range t.lists() {
		n := next()
		if n < 0 || n > int64(len(texts)) {
			return false
		}
		*l = nil
		for range n {
			*l, texts = append(*l, string(texts[0])), texts[1:]
		}
	}
	if len(texts) > 0 || t.size < 1 || t.size > jobenv.MaxRanks || t.count < 1 || t.first < 0 || t.first > t.size-t.count {
		return false
	}
	t.freeze = nil
	for _, r := range nums {
		if r < 0 || r >= int64(t.size) {
			return false
		}
		t.freeze = append(t.freeze, int(r))
	}
	return true
}

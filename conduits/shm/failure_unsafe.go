package shm

import (
	"fmt"
	"hash/fnv"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
)

// The job's first failure. A rank that announces one writes its own record and then
// names it in the header, unless another is named there already. Other processes
// write to the same memory, by mistake or by intent, so a reader believes neither
// the name nor the record before it has checked them, and never passes the text on
// as it is.

// Limits of what a record may say.
const (
	mostStatus   = errs.MostCarried // an exit status has 8 bits; one more tells an Exit
	mostLaunched = jobenv.MaxRanks  // ranks of a job, see segment.AnyVPID
)

// namedRecord is the header's word that names record i: that of the rank at place i, or
// the launcher's if i is the number of ranks. A word that is damaged names none.
func namedRecord(i int) uint64 {
	w := uint64(i) + 1
	return w | uint64(uint32(w*0x9e3779b97f4a7c15>>32))<<32
}

// record is where record i lies.
func (j *job) record(i int) unsafe.Pointer {
	if i == j.n {
		return unsafe.Add(j.header, hdrRecord)
	}
	return unsafe.Add(j.ctl(j.rank(i)), ctlRecord)
}

func (j *job) failedWord() *uint64 { return (*uint64)(unsafe.Add(j.header, hdrFailed)) }

// recordSum is the checksum of a record: FNV-1a of its words and its text.
func recordSum(rank, status uint32, text []byte) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %d ", rank, status, len(text))
	h.Write(text)
	return h.Sum64()
}

// fail records in record by, which is this process's own, that rank failed, if
// that is the first failure, and wakes all.
func (j *job) fail(by, rank, status int, cause string) {
	j.failMu.Lock()
	if !j.noted[by] {
		if j.noted == nil {
			j.noted = map[int]bool{}
		}
		j.noted[by] = true
		p := j.record(by)
		text := unsafe.Slice((*byte)(unsafe.Add(p, recText)), recMax)
		n := copy(text, cause)
		biased := uint32(rank - j.first + failedBias)
		*(*uint32)(unsafe.Add(p, recRank)) = biased
		*(*uint32)(unsafe.Add(p, recStatus)) = uint32(status)
		*(*uint32)(unsafe.Add(p, recLen)) = uint32(n)
		*(*uint64)(unsafe.Add(p, recSum)) = recordSum(biased, uint32(status), text[:n])
	}
	j.failMu.Unlock()
	atomic.CompareAndSwapUint64(j.failedWord(), 0, namedRecord(by))
	j.rouseAll()
}

// hasFailed reports whether there is a failure.
func (j *job) hasFailed() bool { return atomic.LoadUint64(j.failedWord()) != 0 }

// failure is the job's first failure. Its text is printable. If the memory holds
// what no process of ours writes there, that is the failure, of rank -1.
func (j *job) failure() (rank, status int, cause string, ok bool) {
	w := atomic.LoadUint64(j.failedWord())
	if w == 0 {
		return 0, 0, "", false
	}
	damaged := func(format string, args ...any) (int, int, string, bool) {
		return -1, 1, "the job's shared memory is damaged: " + fmt.Sprintf(format, args...), true
	}
	by := int(uint32(w)) - 1
	if by > j.n || w != namedRecord(by) {
		return damaged("the header's word that names the first failure is %#x", w)
	}
	p := j.record(by)
	biased, st, n := *(*uint32)(unsafe.Add(p, recRank)), *(*uint32)(unsafe.Add(p, recStatus)), *(*uint32)(unsafe.Add(p, recLen))
	text := string(unsafe.Slice((*byte)(unsafe.Add(p, recText)), min(n, recMax)))
	rank = int(biased) - failedBias + j.first
	least, most := -1, j.size-1
	if j.launcher { // which knows its first rank as 0
		least, most = -mostLaunched, mostLaunched
	}
	switch {
	case n > recMax:
		return damaged("%s has a text of %d bytes, of at most %d", j.recordName(by), n, recMax)
	case *(*uint64)(unsafe.Add(p, recSum)) != recordSum(biased, st, []byte(text)):
		return damaged("%s has a wrong checksum", j.recordName(by))
	case rank < least || rank > most:
		return damaged("%s names rank %d of %d", j.recordName(by), rank, j.size)
	case st > mostStatus:
		return damaged("%s says that rank %d ended with status %d", j.recordName(by), rank, st)
	}
	return rank, int(st), errs.Line(text, recMax), true
}

func (j *job) recordName(by int) string {
	if by == j.n {
		return "the launcher's failure record"
	}
	return fmt.Sprintf("the failure record of rank %d", j.rank(by))
}

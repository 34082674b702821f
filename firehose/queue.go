package firehose

import (
	"slices"

	"github.com/argon-go/argon/internal/conc"
)

// flights are the requests that a peer has not answered, in the order in which
// they were sent, which most answers come in, too. Behind the first there is nil
// where one has been answered.
type flights struct{ conc.Queue[*flight] }

// find is the request of that number, or nil.
func (q *flights) find(id uint32) *flight {
	for _, f := range q.All() {
		if f != nil && f.id == id {
			return f
		}
	}
	return nil
}

// remove takes out one that find has found.
func (q *flights) remove(f *flight) {
	all := q.All()
	all[slices.Index(all, f)] = nil
	for !q.Empty() && q.First() == nil {
		q.Take()
	}
}

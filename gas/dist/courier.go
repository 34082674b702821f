package dist

import "github.com/argon-go/argon/gas"

// Sizes of what travels together, in bytes: what is for one rank is sent from most on, which is
// mostShipped, and less where the ranks' shares of shipBudget are.
const (
	leastShipped = 256
	mostShipped  = 8 << 10
	shipBudget   = 1 << 20
	// underway is how many messages may wait for their answers.
	underway = 64
)

// courier collects accesses of other ranks' parts of a container and sends many in a message. One
// goroutine uses it at a time; tasks that run while it waits may, too.
type courier struct {
	*ranks
	number, op uint32 // of the container and its operation
	// landed takes the results of accesses that were added with these numbers; nil if none
	// are wanted.
	landed  func(b []byte, to []int32) error
	most    int
	out     []parcel // by rank
	spare   []byte   // for the next parcel's data
	flights []flight // from first on, in order
	first   int
	failed  error // the first
}

// parcel collects the accesses to entries of one rank.
type parcel struct {
	data  []byte
	count int
	to    []int32 // the numbers of the accesses
}

// flight is a parcel that is sent.
type flight struct {
	answer gas.Future[[]byte]
	to     []int32
}

// init makes an empty courier.
func (c *courier) init(r *ranks, number, op uint32, landed func(b []byte, to []int32) error) {
	*c = courier{
		ranks: r, number: number, op: op, landed: landed, out: make([]parcel, r.size),
		most: min(mostShipped, r.n.Layers().AM.MaxMedium()-64, max(leastShipped, shipBudget/r.size)),
	}
}

// add adds access i for rank, whose data the caller has put behind those of its parcel.
func (c *courier) add(rank, i int, data []byte) {
	p := &c.out[rank]
	p.data = data
	p.count++
	if c.landed != nil {
		p.to = append(p.to, int32(i))
	}
	if len(p.data) >= c.most {
		c.send(rank)
	}
}

func (c *courier) note(err error) {
	if err != nil && c.failed == nil {
		c.failed = err
	}
}

// send sends what is kept for rank.
func (c *courier) send(rank int) {
	p := &c.out[rank]
	if p.count == 0 {
		return
	}
	for len(c.flights)-c.first >= underway {
		c.land()
	}
	if p.count == 0 {
		return // a task has sent it meanwhile
	}
	// A task that runs meanwhile may add more.
	q := *p
	*p = parcel{data: c.spare[:0]}
	c.spare = nil
	f, err := callMany.Go(c.n, c.job(rank), request{Map: c.number, Op: c.op, Count: uint32(q.count), Quiet: c.landed == nil, Data: q.data})
	if err == nil {
		c.flights = append(c.flights, flight{f, q.to})
	}
	c.note(err)
	c.spare = q.data
}

// land takes the answer that has been awaited longest.
func (c *courier) land() {
	f := c.flights[c.first]
	c.flights[c.first] = flight{}
	if c.first++; c.first == len(c.flights) || c.first >= underway {
		k := copy(c.flights, c.flights[c.first:])
		clear(c.flights[k:])
		c.flights, c.first = c.flights[:k], 0
	}
	b, err := f.answer.Wait()
	if err == nil && c.landed != nil {
		err = c.landed(b, f.to)
	}
	c.note(err)
}

// finish sends all and takes all answers. The error is the first since the last finish.
func (c *courier) finish() error {
	// Not all ranks to the same one at first.
	for k := 1; k < c.size; k++ {
		c.send((c.rank + k) % c.size)
	}
	for c.first < len(c.flights) {
		c.land()
	}
	err := c.failed
	c.failed = nil
	return err
}

// mostAtOnce is how many keys or indices a call takes.
const mostAtOnce = 1<<31 - 1

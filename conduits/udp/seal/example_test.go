package seal_test

import (
	"fmt"

	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/internal/job/jobkey"
)

// Two ranks of a job talk; a stranger repeats what it has heard, and changes it.
func Example() {
	key := jobkey.New() // or jobkey.LoadFrom
	fmt.Println("key:", key)

	zero, err := seal.New(key, 0, 2, seal.NewIncarnation(), seal.Authenticated)
	if err != nil {
		fmt.Println(err)
		return
	}
	one, err := seal.New(key, 1, 2, seal.NewIncarnation(), seal.Authenticated)
	if err != nil {
		fmt.Println(err)
		return
	}

	datagram, err := zero.Seal(make([]byte, 0, 1500), 1, []byte("hello"))
	if err != nil {
		fmt.Println(err)
		return
	}
	from, plain, why := one.Open(datagram)
	fmt.Printf("rank %d says %q: %v\n", from, plain, why)

	_, _, why = one.Open(datagram)
	fmt.Println("once more:", why)
	datagram[seal.HeaderSize] ^= 1
	_, _, why = one.Open(datagram)
	fmt.Println("changed:", why)
	fmt.Println("refused:", one.Refused().Total())
	// Output:
	// key: (secret)
	// rank 0 says "hello": accepted
	// once more: replayed
	// changed: bad tag
	// refused: 2
}

package seal_test

import (
	"crypto/ecdh"
	"fmt"

	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/internal/job/jobkey"
)

// Two ranks of a job talk; a stranger repeats what it has heard, and changes it.
func Example() {
	key := jobkey.New() // or jobkey.LoadFrom
	fmt.Println("key:", key)

	var runs [2]uint64
	var private [2]*ecdh.PrivateKey
	for r := range runs { // each in its own process
		var err error
		if private[r], err = seal.NewPrivate(seal.Authenticated); err != nil {
			fmt.Println(err)
			return
		}
		runs[r] = seal.NewIncarnation()
	}
	// Ranks learn this of each other when they join.
	announced := func(rank int) (uint64, []byte) { return runs[rank], private[rank].PublicKey().Bytes() }
	var ranks [2]*seal.Sealer
	for r := range ranks {
		var err error
		if ranks[r], err = seal.New(seal.Config{Key: key, Rank: r, Size: 2, Incarnation: runs[r], Private: private[r], Peer: announced}); err != nil {
			fmt.Println(err)
			return
		}
	}

	datagram, err := ranks[0].Seal(make([]byte, 0, 1500), 1, []byte("hello"))
	if err != nil {
		fmt.Println(err)
		return
	}
	from, plain, why := ranks[1].Open(datagram)
	fmt.Printf("rank %d says %q: %v\n", from, plain, why)

	_, _, why = ranks[1].Open(datagram)
	fmt.Println("once more:", why)
	datagram[seal.HeaderSize] ^= 1
	_, _, why = ranks[1].Open(datagram)
	fmt.Println("changed:", why)
	fmt.Println("refused:", ranks[1].Refused().Total())
	// Output:
	// key: (secret)
	// rank 0 says "hello": accepted
	// once more: replayed
	// changed: bad tag
	// refused: 2
}

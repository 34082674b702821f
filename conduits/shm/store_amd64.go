//go:build amd64 && !race

package shm

// plainStores: a store releases without a fence, so a sender's later load of
// the parked word may overtake it; see Endpoint.notify.
const plainStores = true

// storeRelease64 makes everything stored before visible before v. Stores are
// not reordered with earlier loads and stores on amd64 (Intel SDM volume 3,
// 8.2.2; AMD APM volume 2, 7.2), and the compiler keeps memory operations in
// order. atomic.StoreUint64 would be a locked exchange; on a bare ring that took
// 5 ns more a message, and a flood of them three times as long.
func storeRelease64(p *uint64, v uint64) { *p = v }

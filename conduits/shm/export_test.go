package shm

import (
	"math/rand/v2"
	"time"

	"github.com/argon-go/argon/conduits"
)

// ForceFence makes senders of a job fence, or sleepers make a barrier, whatever
// the number of processors would decide.
func ForceFence(m *JobMemory, fence bool) { form{fence: fence}.force(m.j) }

// ReachesInto reports whether ep has found that it may reach into another process.
func ReachesInto(ep conduits.Endpoint) bool {
	for i := range ep.(*Endpoint).peers {
		if p := ep.(*Endpoint).peers[i].Load(); p != nil && p.vm.Load() == vmYes {
			return true
		}
	}
	return false
}

// Brief reports whether ep waits at present as if another rank shared its processor.
func Brief(ep conduits.Endpoint) bool { return ep.(*Endpoint).patience.Brief() }

// Patient has ep wait as if its rank had been launched with a processor of its own.
func Patient(ep conduits.Endpoint) { ep.(*Endpoint).patience.Set(mostSpins, false) }

// WatchOften has watchers look a hundred times as often. It comes before the first Attach.
func WatchOften() { watchEvery = time.Millisecond }

// Junk writes junk over a part of what lies between ranks 0 and 1.
func Junk(ep conduits.Endpoint, rng *rand.Rand) string { return ep.(*Endpoint).j.junk(rng) }

// Ask sends a message of any kind, and Answer answers one in a handler.
func Ask(ep conduits.Endpoint, dst int, rng *rand.Rand) conduits.Status {
	return request(ep.(*Endpoint), dst, rng)
}

// Answer is the other half of Ask.
func Answer(ep conduits.Endpoint, dst int, rng *rand.Rand) { reply(ep.(*Endpoint), dst, rng) }

// CopyWords has ep's rank take it that the system copies words as such.
func CopyWords(ep conduits.Endpoint) { ep.(*Endpoint).memory.words = true }

package shm

import "github.com/argon-go/argon/conduits"

// ForceFence makes senders of a job fence, or sleepers make a barrier, whatever
// the number of processors would decide.
func ForceFence(m *JobMemory, fence bool) { form{fence: fence}.force(m.j) }

// ReachesInto says whether ep has found that it may reach into another process.
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
func Patient(ep conduits.Endpoint) { ep.(*Endpoint).patience.Set(mostSpins, mostYields) }

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

// Crowd sets whether ep's rank was launched as one of too many for the processors,
// and Crowded says whether it waits like one.
func Crowd(ep conduits.Endpoint, launched bool) { ep.(*Endpoint).launched = launched }

// Crowded is the other half of Crowd.
func Crowded(ep conduits.Endpoint) bool { return ep.(*Endpoint).crowded.Load() }

package shm

// ForceFence makes senders of a job fence, or sleepers make a barrier, whatever
// the number of processors would decide.
func ForceFence(m *JobMemory, fence bool) { form{fence: fence}.force(m.j) }

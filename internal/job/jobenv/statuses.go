package jobenv

// Exit statuses: what gasrun gives a job, and what a rank ends with to say why.
const (
	StatusFailed     = 1   // the job failed, but no rank has a status to show for it
	StatusUsage      = 2   // the request cannot be carried out: bad flag, no such program, build failure
	StatusPeerFailed = 121 // a rank's own status when it ended because another rank had failed
	StatusTimeout    = 124 // the job ran longer than it may
	StatusQuit       = 131 // SIGQUIT: ranks were asked where they wait, then ended (128 + 3)
)

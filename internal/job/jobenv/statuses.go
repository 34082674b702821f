package jobenv

import "syscall"

// Exit statuses: what gasrun gives a job, and what a rank ends with to say why.
const (
	StatusFailed     = 1   // the job failed, but no rank has a status to show for it
	StatusUsage      = 2   // the request cannot be carried out: bad flag, no such program, build failure
	StatusPeerFailed = 121 // a rank's own status when it ended because another rank had failed
	StatusTimeout    = 124 // the job ran longer than it may
	StatusQuit       = 131 // SIGQUIT: ranks were asked where they wait, then ended (128 + 3)
)

// A rank that is asked where it waits says so in a line of its own on standard error:
// WhereLine, its number, WhereWaits, and the answer. A process answers for at most
// MostDiagnosed of its ranks.
const (
	MostDiagnosed = 256

	WhereLine  = "argon: where rank "
	WhereWaits = " waits: "
)

// AskSignal asks a process for these lines and changes nothing else. Its default action
// is none (signal(7)), so it does no harm to processes that are not ranks. SIGQUIT asks,
// too, and ends the process.
const AskSignal = syscall.SIGWINCH

// ToldSignal comes before that if the answers will be told, and TraceLast is set: ranks write what they keep. No
// process that does not catch it notices (signal(7)), unless it is stopped, and such ones are not sent it.
const ToldSignal = syscall.SIGCONT

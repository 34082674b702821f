// Package boot starts the ranks of a job for programs that use a conduit and the
// layers am, extended, barrier and segment themselves, such as those that a compiler
// makes. It knows what a process has to know of its job, and nothing of what the ranks
// do in it; package gas starts its ranks by it.
//
//	func main() {
//		boot.Main(boot.Config{}, func(ep conduits.Endpoint) error {
//			b := barrier.New()
//			e, err := am.Attach(ep, am.Config{SegmentSize: 1 << 20, Runtime: b.Handlers()})
//			if err != nil {
//				return err
//			}
//			...
//		})
//	}
//
// # Ranks
//
// In a process that gasrun started, or another launcher as [conduits.Launched] says,
// [Run] joins the job and calls the function for the one rank that the process is.
// Otherwise the process is a job by itself, with as many ranks as Config.Ranks or
// ARGON_RANKS say. A process may be several ranks: what belongs to a rank is not
// in package variables. The conduits that are always there (shm, udp, hybrid and sim)
// are registered by this package.
//
// # The function's duties
//
// The function gets an endpoint that is not attached, and attaches what it uses
// (am.Attach, or Endpoint.Attach). am.Attach returns when all ranks have attached,
// which does not mean that they have bound all layers: a barrier comes before the
// first message. The segment may be as large as Endpoint.Limits says.
//
// This package does no barrier when the function returns, for nothing here can send.
// A rank whose function returns nil leaves the job at once: its memory is gone, and
// what others still wait for of it ends with a *conduits.PeerError that matches
// conduits.ErrClosed. So a program ends with a barrier of its own in which all ranks meet.
// A rank that leaves without having attached fails the job if that has other ranks.
// The endpoint is closed after the function, which need not do that.
//
// # Failure
//
// A rank fails if its function returns an error, panics or ends its goroutine, and
// if the job has failed when it returns nil. The other ranks hear of it by what they
// wait for: all of it ends with a *conduits.PeerError that names the rank. am.Messenger.Exit ends
// the job with a status: a *conduits.ExitError, which Run returns. The exit status of a process
// is said at [Exit]. A setting that can never be right is a conduits.ErrBadArg, a second Run of
// a launched process's rank ErrNotReady, a conduit that cannot run so ErrNotSupported.
//
// SIGQUIT has the process print which of its ranks is the cause of a standstill, and of each what it does,
// where, what it has sent and received, and what the conduit knows besides ([conduits.Diagnoser]), then all
// goroutine stacks; it ends with status 131. SIGUSR1, in a process that gasrun has not
// started, prints the report and ends nothing, and so does a standstill of 30 s (ARGON_STALL) of a job in one
// process; gasrun itself asks its ranks by SIGWINCH. When gasrun is gone, the process ends.
//
// # Runtimes
//
// A runtime that keeps more of a rank than its endpoint starts ranks by
// [RunRanks], which calls the methods of a [Rank]. [Override] has the
// environment override the runtime's own settings as it does a Config.
//
// # Environment
//
// Of the variables that docs/knobs.md lists, this package reads ARGON_RANKS,
// ARGON_CONDUIT, ARGON_SEGMENT, ARGON_ALONE, ARGON_FREEZE and ARGON_VERBOSEENV, and those by
// which a launcher tells a process its rank. Another name that begins with ARGON_,
// and a value that a variable cannot have, are errors.
package boot

// Package conformance checks that a conduit keeps the contract of package
// conduits, and that the layers above work on it: what nettest is to
// implementers of net.Conn. What the layers do whatever the conduit is theirs to test.
//
//	func TestConformance(t *testing.T) { conformance.Run(t, mine.Local) }
//
// [Run] opens many jobs, all of whose ranks are in the test's process, and runs
// the groups of checks on them:
//
//   - contract: each promise of package conduits, on bare endpoints; those about
//     memory beyond the segment too: "unit", "registered ...", "refused messages",
//     "faults amid traffic", "deregister", "unmap".
//   - layers: what the layers above need of a conduit, seen through them: lanes, as many
//     operations under way as there are handles, and how a rank that leaves, or ends the job,
//     is named.
//   - machine: the whole interface at random against a model, see [Program]; on bare
//     endpoints with memory that is registered and deregistered on the way.
//
// Checks are subtests, so -run chooses among them. In the end Run prints what the
// conduit offers (limits, direct access, which operations complete at once) and
// which checks ran; -v shows that of a conduit that passes.
//
// # What open must do
//
// The function given to Run is the Local of a conduits.Conduit: it opens all ranks
// of a new job, in order, not attached. It honours the Config: at least as many
// credits and as large payloads and segments as asked for, and whatever it decides
// by chance it decides from Config.Seed. Jobs follow one another, and a job may be
// opened while the ranks of a broken one still run.
//
// A conduit on which ranks cannot run as they like, such as a simulator, has
// endpoints that are a conduits.Runner. It has to find out by itself when nothing
// moves any more.
//
// Ranks also wait for each other in the test's memory, not by messages, by Wake:
// of the rank itself where there is no direct access.
//
// # Failures
//
// A check that fails prints how to run it again. On a conduit that is
// deterministic for a seed, such as the simulator, it fails again in the same way.
// A random program that fails is made short and printed as a test that calls
// [Replay].
//
// A loss (of a message, a completion, credit, a wake-up) shows as a job that
// hangs. When nothing has moved for -conformance.patience, or when the test's time
// (go test -timeout) is nearly over, the job is ended by Fail, and the check says
// what each rank was waiting for. If Fail does not end it, its goroutines are
// printed and left behind, and no more checks run; nor do they after three jobs
// that hang. A panic of a rank fails its check.
//
// # Flags
//
//	-conformance.seeds N     repeat every randomized check with N seeds (default 1)
//	-conformance.seed S      the first seed (default 1)
//	-conformance.rounds N    how often the checks of waking sleep and wake (default 5000,
//	                         1000 under the race detector)
//	-conformance.programs N  random programs of each kind for a seed (default 150, the most;
//	                         50 under the race detector)
//	-conformance.patience D  how long nothing may move in a job (default 10s)
//
// By default the suite takes seconds. Over night:
//
//	go test ./mine -timeout 0 -conformance.seeds 1000
//	go test ./mine -timeout 0 -conformance.rounds 1000000 -run '/contract/wake'
//
// # More than one conduit does by itself
//
// Messages of a fast conduit hardly overtake each other, and its operations
// complete at once. Package chaos puts misfortune on top of a conduit that is a
// conduits.Deliverer:
//
//	conformance.Run(t, chaos.Local(mine.Local, chaos.Config{}))
//
// That checks the layers more than the conduit, and the conduit's Deliver.
package conformance

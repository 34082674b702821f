// Package conduittest checks that a conduit keeps the contract of package
// conduits, and that the layers above work on it: what nettest is to
// implementers of net.Conn.
//
//	func TestConformance(t *testing.T) { conduittest.Run(t, mine.Local) }
//
// [Run] opens many jobs, all of whose ranks are in the test's process. It first
// checks each promise of the contract on bare endpoints, then active messages,
// the barrier, put and get, and package gas on them, and at last drives the
// whole interface at random against a model.
//
// In the end it prints what the conduit offers and which checks ran; -v shows that
// of a conduit that passes. An endpoint can add to it by being a [Describer].
//
// Flags:
//
//	-conduittest.seeds N   repeat every randomized check with N seeds (default 1)
//	-conduittest.seed S    the first seed (default 1)
//	-conduittest.rounds N  how often the checks of waking sleep and wake (default 5000)
//
// A wake-up that is missed is a hang. It ends when the test's time is nearly over
// (go test -timeout), and the report says what the ranks were waiting for.
//
// Ranks also wait for each other in the test's memory, not by messages, by Wake:
// of the rank itself where there is no direct access.
//
// A check that fails prints its seed. On a conduit that is deterministic for a
// seed, such as the simulator, running it again with that seed fails in the same
// way.
package conduittest

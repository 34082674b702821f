// Package testjob runs the programs of multi-process tests: jobs whose ranks
// are processes of the test binary itself.
//
// A test package names its programs in TestMain; a rank that a test starts runs
// one of them instead of the tests:
//
//	func TestMain(m *testing.M) {
//		testjob.Main(m, map[string]func(){"echo": echo})
//	}
//
//	func echo() {
//		ep, err := testjob.Join(conduits.Config{})
//		...
//	}
//
//	func TestEcho(t *testing.T) {
//		testjob.Run(t, 4, "echo").Want(t, 0)
//	}
//
// A program that returns ends its rank with status 0; a panic ends it with 2,
// and Fatal with 1. As in every job, a rank that ends with status 0 has to have
// left the job in good order (Endpoint.Close), unless no rank attaches, in which
// case the job's status is 1: programs that use no conduit say so by
// Config.NoConduit.
//
// Every job is over when Run returns: its processes are gone, which is checked.
//
// Packages that package shm imports cannot import testjob from their internal
// tests; their external tests (package x_test) can.
package testjob

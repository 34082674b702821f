// Package weathertest has no code but tests: jobs of several ranks over real sockets
// in bad weather (package faultproxy), under attack, and on hosts that vanish
// (package netns). What one engine does with one datagram is tested beside it;
// here is shown that whole jobs keep their promises.
//
// By default the tests take seconds. Longer:
//
//	go test ./internal/lab/weathertest -weather.attack 1000000 -weather.storm -conformance.programs 150 -timeout 0
//
// In builds with the tag ofi, jobs on conduit ofi are harmed on such hosts, too: see TestFabric.
package weathertest

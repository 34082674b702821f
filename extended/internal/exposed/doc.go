// Package exposed reaches exposed memory for package extended. To the operations
// there its Endpoint looks like a conduit: Put, Get, PutWord and Atomic return what
// has happened at once, and have a completer told of the rest.
//
// It has three parts, each of which can be read alone:
//
//	policy.go   which way an access takes
//	access.go   the state machine of one access, with its short way in short.go
//	bounce.go   the transport of bounces: what the owner does for an access
//
// request.go is what all of them know of an access, endpoint.go puts them together
// and serves own memory.
//
// What the Endpoint is asked for at a time is as much as one pin covers, or as the
// transport takes: Most says how much that is.
//
// # Deadlock
//
// An access has one pin, which it releases when the conduit has ended its
// operations. It waits for nothing else while it has it, so that the rules of package
// firehose hold whatever the number of accesses.
package exposed

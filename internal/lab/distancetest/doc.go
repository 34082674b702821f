// Package distancetest has no code but tests: what jobs over udp achieve on long, slow,
// narrow and lossy paths (package wan), compared with TCP on the same path.
// docs/distance.md has the tables.
//
// By default the tests take seconds, in virtual time. All rows, and all rows
// written into the document:
//
//	go test ./internal/lab/distancetest -distance.all -v -timeout 0
//	go test ./internal/lab/distancetest -distance.all -distance.write -timeout 0
package distancetest

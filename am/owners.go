package am

import (
	"strings"

	"github.com/argon-go/argon/internal/errs"
)

// Which handler indices belong to which package. A package numbers its handlers
// from its constant on and names them "package.handler"; Attach refuses one
// outside its package's range, or in another's.
//
//	  0..15   am: the comparison of tables at Attach, long messages to exposed memory
//	 16..31   barrier
//	 32..63   extended
//	 64..79   collective; package gas has them named "gas.collective.ready" and so on
//	 80..87   gas: calls
//	 88..95   aggregate; package gas has them named "gas.aggregate.data" and so on
//	 96..111  other layers, in Config.Runtime: their names begin with none of these
//	112..127  firehose
//	128..255  clients: Config.Handlers
const (
	FirstBarrier    HandlerID = 16
	FirstExtended   HandlerID = 32
	FirstCollective HandlerID = 64
	FirstGas        HandlerID = 80
	FirstAggregate  HandlerID = 88
	FirstFree       HandlerID = 96
	FirstFirehose   HandlerID = 112
)

// owners are the ranges, in order and without gaps; each ends where the next
// begins, and the last at NumHandlers. Of the indices of clients any name
// may have one, of those of "" any that does not begin with the name of a package here.
var owners = [...]struct {
	name  string
	first HandlerID
}{
	{"am", 0},
	{"barrier", FirstBarrier},
	{"extended", FirstExtended},
	{"collective", FirstCollective},
	{"gas", FirstGas},
	{"aggregate", FirstAggregate},
	{"", FirstFree},
	{"firehose", FirstFirehose},
	{"clients", FirstClient},
}

// clients is the last of owners.
const clients = len(owners) - 1

// ownerOf is the place in owners of the range that h is in.
func ownerOf(h HandlerID) int {
	for i := clients; ; i-- {
		if h >= owners[i].first {
			return i
		}
	}
}

// ownerByName is the place in owners of the package that a runtime handler's name
// begins with, or of the range of no package.
func ownerByName(name string) int {
	for _, below := range [...]string{"gas.collective.", "gas.aggregate."} { // those of these packages in a program of gas
		if strings.HasPrefix(name, below) {
			name = strings.TrimPrefix(name, "gas.")
		}
	}
	pkg, _, _ := strings.Cut(name, ".")
	free := 0
	for i := range clients {
		switch owners[i].name {
		case pkg:
			return i
		case "":
			free = i
		}
	}
	return free
}

// lastOf is the last index of a range of owners.
func lastOf(i int) int {
	if i == clients {
		return NumHandlers - 1
	}
	return int(owners[i+1].first) - 1
}

// errForeign is the error of a runtime handler that is not in the range of its own
// package. Apart, for its frame would be on the stack of every rank that attaches.
//
//go:noinline
func errForeign(ent *Entry) error {
	at, own := ownerOf(ent.Index), ownerByName(ent.Name)
	return errs.BadArg("am: runtime handler %q: index %d is one of %s; those of %s are %d..%d",
		ent.Name, ent.Index, ownerTitle(at), ownerTitle(own), owners[own].first, lastOf(own))
}

func ownerTitle(i int) string {
	if owners[i].name == "" {
		return "other layers"
	}
	return "package " + owners[i].name
}

package lint

import (
	"go/ast"
	"slices"
	"strings"
)

// brief lists, by file, the functions whose built-in copies and clears are of a length that no
// caller chooses: words of a message, a datagram or medium, names and texts, records, lists of
// as many entries as there are ranks, handles or messages under way.
var brief = map[string]string{
	"am/am.go":                   "putReserved",
	"am/attach.go":               "whole onTable",
	"am/exposed.go":              "putExposed",
	"am/prepare.go":              "Commit",
	"conduits/adapt/mail.go":     "transmit SendPayload arrived",
	"conformance/chaos/chaos.go": "due Receive",
	"conformance/chaos/send.go":  "inParts sendLong",
	"conduits/ofi/frame.go":      "putMessage",
	"conduits/ofi/internal/fabric/fabric_unsafe.go": "post Poll",
	"conduits/ofi/keys.go":                          "Deregister forgo",
	"conduits/ofi/progress.go":                      "answerPeer",
	"conduits/shm/answer_unsafe.go":                 "stopServing",
	"conduits/shm/ask_unsafe.go":                    "placeFirst",
	"conduits/shm/failure_unsafe.go":                "fail",
	"conduits/shm/job_unsafe.go":                    "Release",
	"conduits/shm/long_unsafe.go":                   "sendLong",
	"conduits/shm/mailbox_unsafe.go":                "SendPayload",
	"conduits/sim/endpoint.go":                      "Send SendPayload",
	"conduits/sim/offload.go":                       "Multicast",
	"conduits/sim/socket.go":                        "Send Recv",
	"conduits/udp/engine/congest.go":                "lost",
	"conduits/udp/engine/engine.go":                 "Send Copy SendLong long",
	"conduits/udp/engine/path.go":                   "note",
	"conduits/udp/engine/pathmtu.go":                "sound",
	"conduits/udp/engine/pieces.go":                 "assemble",
	"conduits/udp/engine/receive.go":                "follows perform store accept",
	"conduits/udp/engine/send.go":                   "emit",
	"conduits/udp/link_batch.go":                    "clear",
	"conduits/udp/mailbox.go":                       "reservePut",
	"conduits/udp/paths.go":                         "send",
	"conduits/udp/seal/sealer.go":                   "Seal",
	"conduits/udp/self.go":                          "message sendSelf",
	"extended/aggregate/endpoint.go":                "step push",
	"extended/collective/calls.go":                  "clear",
	"extended/collective/inflight.go":               "pass",
	"extended/collective/shared.go":                 "put take fold",
	"extended/collective/transfer.go":               "at drop unlink",

	"extended/rma.go":            "fill",
	"firehose/batch.go":          "Free",
	"firehose/machine.go":        "completePending",
	"gas/alloc_unsafe.go":        "remoteFree",
	"gas/call_large.go":          "sendEncoded arrived",
	"gas/call_unsafe.go":         "onCall returned send",
	"gas/call_work.go":           "runOne",
	"gas/dist/courier.go":        "land",
	"gas/dist/key.go":            "copyTo hashBytes",
	"gas/dist/update.go":         "Call",
	"upc/libc/memory_unsafe.go":  "Str Push Qsort",
	"upc/libc/options_unsafe.go": "Getopt",
	"upc/rt/barrier.go":          "mismatch",
	"upc/rt/group_unsafe.go":     "Sync",
}

// copies sees that the packages which programs run on copy and clear memory of a caller's
// length by internal/bulk: the built-ins keep the collector from stopping the world until
// they have ended, and the process from answering its peers.
func (c *checker) copies(name string, f *ast.File) {
	allowed := strings.Fields(brief[name])
	used := map[string]bool{}
	for _, d := range f.Decls {
		in := ""
		switch d := d.(type) {
		case *ast.FuncDecl:
			in = d.Name.Name
		case *ast.GenDecl: // a function that a variable holds
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok {
					in = v.Names[0].Name
				}
			}
		}
		ast.Inspect(d, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if fn, ok := call.Fun.(*ast.Ident); ok && (fn.Name == "copy" || fn.Name == "clear") {
				if used[in] = true; !slices.Contains(allowed, in) {
					c.add(name, c.fset.Position(call.Pos()).Line,
						"the built-in %s cannot be preempted: use internal/bulk, or list %s in internal/tools/lint/copies.go if no caller chooses the length", fn.Name, in)
				}
			}
			return true
		})
	}
	for _, fn := range allowed {
		if !used[fn] {
			c.add(name, 0, "internal/tools/lint/copies.go lists %s, which copies nothing by a built-in", fn)
		}
	}
}

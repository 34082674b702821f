package conformance

import (
	"time"

	"github.com/argon-go/argon/conformance/contract"
)

// FindFailure is the state machine's search without a test to fail.
func FindFailure(open Open, seed uint64, kind Program) string {
	text, _ := findFailure(open, seed, kind, contract.Patience{Wait: 10 * time.Second})
	return text
}

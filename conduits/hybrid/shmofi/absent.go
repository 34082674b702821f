//go:build !ofi || !cgo

package shmofi

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/ofi/providers"
)

func init() {
	conduits.Register(conduits.Conduit{Name: Name, Missing: providers.HowTo})
}

package shm_test

import (
	"testing"

	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conformance"
)

func TestConformance(t *testing.T) { conformance.Run(t, shm.Local) }

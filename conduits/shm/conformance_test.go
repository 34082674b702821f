package shm_test

import (
	"testing"

	"github.com/argon-go/argon/conduits/conduittest"
	"github.com/argon-go/argon/conduits/shm"
)

func TestConformance(t *testing.T) { conduittest.Run(t, shm.Local) }

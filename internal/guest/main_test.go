package guest_test

import (
	"testing"

	"github.com/argon-go/argon/internal/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

package adapt_test

import (
	"testing"

	"github.com/argon-go/argon/internal/testkit/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

package bulk

import (
	"os"
	"testing"

	"github.com/argon-go/argon/internal/testmain"
)

func TestMain(m *testing.M) { os.Exit(testmain.Run(m)) }

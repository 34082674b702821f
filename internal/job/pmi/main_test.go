package pmi_test

import (
	"os"
	"testing"

	"github.com/argon-go/argon/internal/testkit/testmain"
)

func TestMain(m *testing.M) { os.Exit(testmain.Run(m)) }

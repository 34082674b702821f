package gastest_test

import "testing"

// TestExample: the example passes.
func TestExample(t *testing.T) { testSum(t) }

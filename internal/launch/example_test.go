package launch_test

import (
	"context"
	"fmt"

	"github.com/argon-go/argon/internal/launch"
)

func ExampleRun() {
	res, err := launch.Run(context.Background(), launch.Config{
		Size:    2,
		Program: "sh",
		Args:    []string{"-c", `if [ $ARGON_RANK = 1 ]; then exit 7; fi; exec sleep 10000`},
		Segment: 1 << 20,
	})
	fmt.Println("status", res.Status, "rank", res.Failed, "failed:", err != nil)
	// Output: status 7 rank 1 failed: true
}

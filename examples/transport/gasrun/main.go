// Command gasrun is argon's, with conduit tcp.
package main

import (
	_ "example.com/transport/tcp"

	"github.com/argon-go/argon/launch"
)

func main() { launch.Main() }

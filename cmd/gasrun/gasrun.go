package main

import "github.com/argon-go/argon/launch"

func main() { launch.Main() }

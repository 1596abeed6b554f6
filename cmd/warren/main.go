// Command warren is the broker and its tools in one binary.
package main

import (
	"os"

	"github.com/warrenmq/warren/cmd/internal/tools"
)

func main() {
	os.Exit(tools.Main(os.Args[1:], tools.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

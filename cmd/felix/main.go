// Command felix is the one binary of Felix: its servers, its client commands
// and its benchmarks. The commands live in internal/cli.
package main

import (
	"os"

	"github.com/felixlog/felix/internal/cli"
)

func main() { os.Exit(cli.Main()) }

package simulation

import "flag"

var (
	seeds   = flag.Int("seeds", 4, "how many seeds to run")
	first   = flag.Uint64("seed", 1, "the first seed")
	verbose = flag.Bool("nodelog", false, "print the nodes' logs")
)

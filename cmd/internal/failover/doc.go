// Package failover holds tests of whole clusters: real warren processes on loopback that are killed with -9, paused,
// stopped, emptied and talked nonsense to while clients work. The tests read as stories; their long forms run with
// -long.
package failover

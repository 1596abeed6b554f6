// Package faults has the tests in which a whole node meets every fault of its disk: each file call of a scripted
// history fails once in each way, and each byte of the data directory rots once. It runs in virtual time, on disks in
// memory.
package faults

// Package loopback finds addresses for nodes that run on one machine and must be known before the nodes start.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports lie below those that kernels give to outgoing connections and to listeners that do not care. They are divided into
// blocks; whoever listens on the first port of a block has the others to give away.
const (
	firstPort = 10_000
	blockSize = 64
	blocks    = 350
	maxBlocks = 8 // of one process; then it gives the same ports again
)

var (
	mu   sync.Mutex // guards what follows
	held []net.Listener
	next int // index of a port in the blocks held, their first ones left out
)

// Addresses returns addresses that are free for TCP and UDP. They stay so: until this process ends no process is given them
// again by this function, nor by the kernel; this one is, after some 500 others.
func Addresses(count int) ([]string, error) {
	mu.Lock()
	defer mu.Unlock()
	var out []string
	for range maxBlocks * blockSize {
		if len(out) == count {
			return out, nil
		}
		if next == len(held)*(blockSize-1) {
			if err := hold(); err != nil {
				return nil, err
			}
		}
		first := held[next/(blockSize-1)].Addr().(*net.TCPAddr).Port
		address := at(first + 1 + next%(blockSize-1))
		next++
		if free(address) {
			out = append(out, address)
		}
	}
	return nil, fmt.Errorf("%d of %d free ports found on 127.0.0.1", len(out), count)
}

// hold takes one more block, or begins with the first again.
func hold() error {
	if len(held) == maxBlocks {
		next = 0
		return nil
	}
	start := rand.IntN(blocks)
	var err error
	for i := range blocks {
		var l net.Listener
		if l, err = net.Listen("tcp", at(firstPort+(start+i)%blocks*blockSize)); err == nil {
			held = append(held, l)
			return nil
		}
	}
	return fmt.Errorf("no block of ports is free on 127.0.0.1: %w", err)
}

func free(address string) bool {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	defer l.Close()
	p, err := net.ListenPacket("udp", address)
	if err != nil {
		return false
	}
	return p.Close() == nil
}

func at(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

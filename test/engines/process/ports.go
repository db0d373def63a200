package process

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken below the range from which the kernel takes ports of outgoing connections, so
// that a server that is restarted finds its ports free.
const (
	firstPort = 10_000
	lastPort  = 32_000
)

// FreePorts returns n different ports of 127.0.0.1 on which nothing listens.
func FreePorts(n int) (ports []int, err error) {
	for range 100 * n {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", LocalAddr(port))
		if err != nil {
			continue
		}
		defer l.Close() // only when all are found, so that they differ
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("fewer than %d ports from %d to %d are free", n, firstPort, lastPort)
}

// LocalAddr returns the address of a port of 127.0.0.1.
func LocalAddr(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

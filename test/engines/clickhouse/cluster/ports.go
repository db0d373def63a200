package cluster

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

// freePorts returns n different ports of 127.0.0.1 on which nothing listens.
func freePorts(n int) (ports []int, err error) {
	for range 100 * n {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", localAddr(port))
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

func localAddr(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

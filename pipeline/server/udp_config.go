package server

import (
	"errors"

	"github.com/tracing-backend/tracing/pipeline"
)

// Limits of what a UDP listener can be configured to.
const (
	maxDatagram     = 65_527 // the most that fits over IPv6; over IPv4 it is 65,507
	minUDPQueue     = 1 << 20
	maxUDPQueue     = 1 << 36
	maxUDPWorkers   = 1000
	maxSocketBuffer = 1 << 30
)

// UDPConfig are the keys of a UDP listener. A config that embeds it and has keys of its own needs a Validate of its own for those (and only
// those): the loader calls the one of UDPConfig, too. Nobody is authenticated and there are no tenants: datagrams have no headers.
type UDPConfig struct {
	Endpoint      pipeline.Endpoint `yaml:"endpoint" network:"udp" doc:"Address to listen on, host:port; localhost is 127.0.0.1 and ::1."`
	MaxPacketSize pipeline.ByteSize `yaml:"max_packet_size" doc:"Greatest datagram; longer ones are refused, since they would be cut off."`
	QueueSize     pipeline.ByteSize `yaml:"queue_size" doc:"How many bytes of datagrams may wait for a worker; what comes when it is full is dropped, and counted."`
	Workers       int               `yaml:"workers" doc:"How many sets of datagrams are worked on at once. A worker takes all that wait, and waits until they are stored or sent."`
	SocketBuffer  pipeline.ByteSize `yaml:"socket_buffer" doc:"Size to ask of the system for what waits to be read, which it may lower; 0 leaves the system's default."`
}

// DefaultUDPConfig returns sizes that clients of the field fit in and that take up bursts, and the given endpoint.
func DefaultUDPConfig(endpoint pipeline.Endpoint) UDPConfig {
	return UDPConfig{
		Endpoint:      endpoint,
		MaxPacketSize: 65_000,
		QueueSize:     16 << 20,
		Workers:       10,
		SocketBuffer:  4 << 20,
	}
}

// Validate reports values that would switch a limit off or make the listener useless.
func (c *UDPConfig) Validate() error {
	return errors.Join(
		checkEndpoint(c.Endpoint),
		checkRange("max_packet_size", int64(c.MaxPacketSize), 1, maxDatagram),
		checkRange("queue_size", int64(c.QueueSize), minUDPQueue, maxUDPQueue),
		checkRange("workers", int64(c.Workers), 1, maxUDPWorkers),
		checkRange("socket_buffer", int64(c.SocketBuffer), 0, maxSocketBuffer),
	)
}

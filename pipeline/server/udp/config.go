package udp

import (
	"errors"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server/internal/listen"
)

// Limits of configuration values, in bytes except for maxWorkers.
const (
	maxDatagram     = 65_527 // maximum payload over IPv6; over IPv4 it is 65,507
	minQueue        = 1 << 20
	maxQueue        = 1 << 36
	maxWorkers      = 1000
	maxSocketBuffer = 1 << 30
)

// Config is the configuration of a UDP listener. It has neither authentication nor tenancy, because
// datagrams have no headers. A config that embeds Config should define its own Validate that checks
// only its own keys: the loader also calls the Validate of embedded configs.
type Config struct {
	Endpoint      pipeline.Endpoint `yaml:"endpoint" network:"udp" doc:"Address to listen on, host:port. localhost listens on 127.0.0.1 and ::1."`
	MaxPacketSize pipeline.ByteSize `yaml:"max_packet_size" doc:"Maximum size of a datagram. Longer ones are refused."`
	QueueSize     pipeline.ByteSize `yaml:"queue_size" doc:"Maximum total size of the datagrams that wait for a worker. Further ones are dropped and counted. The default is 1/96 of the available memory, at most 16MiB."`
	Workers       int               `yaml:"workers" doc:"Number of concurrent workers. A worker takes all waiting datagrams and is busy until their spans are stored or sent."`
	SocketBuffer  pipeline.ByteSize `yaml:"socket_buffer" doc:"Requested size of the receive buffer, which the operating system may reduce. 0 uses its default."`
}

// The default of queue_size is 1/queuePart of the available memory, but at most the maximum.
const (
	queuePart       = 96
	maxDefaultQueue = 16 << 20
)

// DefaultConfig returns a config for the endpoint. Its sizes fit the datagrams of common clients
// and absorb bursts.
func DefaultConfig(endpoint pipeline.Endpoint) Config {
	return Config{
		Endpoint:      endpoint,
		MaxPacketSize: 65_000,
		QueueSize:     pipeline.MemoryShare(queuePart, maxDefaultQueue),
		Workers:       10,
		SocketBuffer:  4 << 20,
	}
}

// Validate reports values that would disable a limit or make the listener unusable.
func (c *Config) Validate() error {
	return errors.Join(
		listen.CheckEndpoint(c.Endpoint),
		listen.CheckRange("max_packet_size", int64(c.MaxPacketSize), 1, maxDatagram),
		listen.CheckRange("queue_size", int64(c.QueueSize), minQueue, maxQueue),
		listen.CheckRange("workers", int64(c.Workers), 1, maxWorkers),
		listen.CheckRange("socket_buffer", int64(c.SocketBuffer), 0, maxSocketBuffer),
	)
}

// Package thriftudp receives spans over UDP, as client libraries send them to an agent: one datagram is one Thrift message that calls
// emitBatch or emitZipkinBatch. The listener fixes the Thrift protocol, not the method: clients send either to any of them.
package thriftudp

import (
	"errors"
	"runtime"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// The endpoints that clients know.
const (
	defaultCompactEndpoint = "localhost:6831"
	defaultBinaryEndpoint  = "localhost:6832"
	defaultZipkinEndpoint  = "localhost:5775"
)

// workMemory is about what a translation of the greatest datagram takes at most besides what it makes, in bytes. It is far less for what
// applications send.
const workMemory = 3 << 20

// mostClients is the greatest value of max_clients.
const mostClients = 1_000_000

type config struct {
	Compact    pipeline.Optional[server.UDPConfig] `yaml:"compact" doc:"The compact protocol, as most clients send it."`
	Binary     pipeline.Optional[server.UDPConfig] `yaml:"binary" doc:"The binary protocol."`
	Zipkin     pipeline.Optional[server.UDPConfig] `yaml:"zipkin" doc:"The compact protocol on the port of clients that send the Zipkin model."`
	MaxClients int                                 `yaml:"max_clients" doc:"How many clients statistics are kept of; further ones are not followed."`
}

func defaults() config {
	return config{
		Compact:    pipeline.Absent(server.DefaultUDPConfig(defaultCompactEndpoint)),
		Binary:     pipeline.Absent(server.DefaultUDPConfig(defaultBinaryEndpoint)),
		Zipkin:     pipeline.Absent(server.DefaultUDPConfig(defaultZipkinEndpoint)),
		MaxClients: 10_000,
	}
}

// Validate reports mistakes between keys.
func (c *config) Validate() error {
	var errs []error
	if len(c.ports()) == 0 {
		errs = append(errs, pipeline.BadKey("", "needs compact, binary or zipkin; an empty block takes the defaults: thriftudp: {compact: }"))
	}
	if c.MaxClients < 0 || c.MaxClients > mostClients {
		errs = append(errs, pipeline.BadKey("max_clients", "must be from 0 to %d, not %d", mostClients, c.MaxClients))
	}
	return errors.Join(errs...)
}

// port is one listener, and what tells it from the others. model and protocol are labels of metrics.
type port struct {
	name, model, protocol string
	encoding              native.Encoding
	server                server.UDPConfig
}

// ports returns the listeners that are switched on.
func (c *config) ports() []port {
	var on []port
	add := func(block pipeline.Optional[server.UDPConfig], p port) {
		if cfg, ok := block.Get(); ok {
			p.server = cfg
			on = append(on, p)
		}
	}
	add(c.Compact, port{name: "compact", model: "tracing", protocol: "compact", encoding: native.Compact})
	add(c.Binary, port{name: "binary", model: "tracing", protocol: "binary", encoding: native.Binary})
	add(c.Zipkin, port{name: "zipkin", model: "zipkin", protocol: "compact", encoding: native.Compact})
	return on
}

// Factory makes receivers of type thriftudp.
func Factory() pipeline.Factory {
	return pipeline.Receiver("thriftudp", defaults, newReceiver).
		Doc("Accepts spans in Thrift over UDP, as client libraries send them to an agent.")
}

type receiver struct {
	server.Group
	clients *clients
	memory  int64 // see MaxMemory
}

var _ pipeline.MemoryUser = (*receiver)(nil)

func newReceiver(set pipeline.Settings, c config, next pipeline.Consumer) (*receiver, error) {
	clients, err := newClients(set, c.MaxClients)
	if err != nil {
		return nil, err
	}
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	r := &receiver{Group: server.Group{}, clients: clients, memory: clients.maxMemory() + int64(cap(slots))*workMemory}
	for _, p := range c.ports() {
		l, err := newListener(set, p, clients, slots, next)
		if err != nil {
			return nil, err
		}
		r.Group[p.name] = l
		r.memory += l.MaxMemory()
	}
	return r, nil
}

// MaxMemory returns the bytes that all listeners, translations under way and the statistics of clients take at most. What translations make is
// charged to the budget.
func (r *receiver) MaxMemory() int64 { return r.memory }

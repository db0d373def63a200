// Package thriftudp receives spans over UDP, as client libraries send them to an agent: one datagram is one Thrift message that calls
// emitBatch or emitZipkinBatch. The listener fixes the Thrift protocol, not the method: clients send either to any of them.
package thriftudp

import (
	"context"
	"errors"
	"sync"

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
	listeners map[string]*listener // by name
	clients   *clients
}

var (
	_ pipeline.Stopper    = (*receiver)(nil)
	_ pipeline.Addressed  = (*receiver)(nil)
	_ pipeline.MemoryUser = (*receiver)(nil)
)

func newReceiver(set pipeline.Settings, c config, next pipeline.Consumer) (*receiver, error) {
	clients, err := newClients(set, c.MaxClients)
	if err != nil {
		return nil, err
	}
	r := &receiver{listeners: map[string]*listener{}, clients: clients}
	for _, p := range c.ports() {
		if r.listeners[p.name], err = newListener(set, p, clients, next); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Start opens all listeners, or none.
func (r *receiver) Start(ctx context.Context) error {
	var started []*listener
	for _, l := range r.listeners {
		if err := l.Start(ctx); err != nil {
			return errors.Join(err, stopAll(ctx, started))
		}
		started = append(started, l)
	}
	return nil
}

// Stop drains all listeners at once.
func (r *receiver) Stop(ctx context.Context) error {
	var all []*listener
	for _, l := range r.listeners {
		all = append(all, l)
	}
	return stopAll(ctx, all)
}

func stopAll(ctx context.Context, all []*listener) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, l := range all {
		wg.Go(func() { errs[i] = l.Stop(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Addr returns the address of the listener `compact`, `binary` or `zipkin`.
func (r *receiver) Addr(name string) string {
	if l, ok := r.listeners[name]; ok {
		return l.Addr()
	}
	return ""
}

// MaxMemory returns the bytes that all listeners, translations under way and the statistics of clients take at most. What translations make is
// charged to the budget.
func (r *receiver) MaxMemory() int64 {
	sum := r.clients.maxMemory()
	for _, l := range r.listeners {
		sum += l.MaxMemory() + int64(l.port.server.Workers)*workMemory
	}
	return sum
}

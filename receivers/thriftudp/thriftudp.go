// Package thriftudp receives spans over UDP, as client libraries send them to an agent. A datagram
// is a Thrift message that calls emitBatch or emitZipkinBatch. The port determines the Thrift
// protocol but not the method: every port accepts both.
package thriftudp

import (
	"errors"
	"runtime"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/server/udp"
)

// Default endpoints of clients.
const (
	defaultCompactEndpoint = "localhost:6831"
	defaultBinaryEndpoint  = "localhost:6832"
	defaultZipkinEndpoint  = "localhost:5775"
)

// workMemory is the approximate maximum memory of a translation without its result, in bytes.
// Typical datagrams need far less.
const workMemory = 3 << 20

// maxMaxClients is the maximum value of max_clients.
const maxMaxClients = 1_000_000

type config struct {
	Compact    pipeline.Optional[udp.Config] `yaml:"compact" doc:"Listener for the compact protocol, which most clients use."`
	Binary     pipeline.Optional[udp.Config] `yaml:"binary" doc:"Listener for the binary protocol."`
	Zipkin     pipeline.Optional[udp.Config] `yaml:"zipkin" doc:"Listener for the compact protocol with Zipkin's model."`
	Tenant     string                        `yaml:"tenant" doc:"Tenant of all spans, because datagrams cannot name one. Empty is the default tenant, which clients of listeners with tenancy cannot read."`
	MaxClients int                           `yaml:"max_clients" doc:"Maximum number of clients for which statistics are kept."`
}

func defaults() config {
	return config{
		Compact:    pipeline.Absent(udp.DefaultConfig(defaultCompactEndpoint)),
		Binary:     pipeline.Absent(udp.DefaultConfig(defaultBinaryEndpoint)),
		Zipkin:     pipeline.Absent(udp.DefaultConfig(defaultZipkinEndpoint)),
		MaxClients: 10_000,
	}
}

// Validate checks that at least one listener is configured.
func (c *config) Validate() error {
	var errs []error
	if len(c.ports()) == 0 {
		errs = append(errs, pipeline.BadKey("", "must have compact, binary or zipkin; an empty block uses the defaults: thriftudp: {compact: }"))
	}
	if c.MaxClients < 0 || c.MaxClients > maxMaxClients {
		errs = append(errs, pipeline.BadKey("max_clients", "must be from 0 to %d, not %d", maxMaxClients, c.MaxClients))
	}
	if c.Tenant != "" {
		if _, err := new(server.TenancyConfig).Tenant([]string{c.Tenant}); err != nil {
			errs = append(errs, pipeline.BadKey("tenant", "%.300q is not a valid tenant name; use up to 256 printable ASCII characters "+
				"without leading or trailing spaces", c.Tenant))
		}
	}
	return errors.Join(errs...)
}

// BypassesTenants implements [pipeline.TenantBypass].
func (c *config) BypassesTenants() (problem string, allowed bool) {
	if c.Tenant != "" {
		return "", true
	}
	return "spans belong to no tenant, because datagrams cannot name one, so clients that must name a tenant never see them; " +
		"set tenant, or remove the receiver", true
}

// port describes a listener. model and protocol are metric labels.
type port struct {
	name, model, protocol string
	encoding              native.Encoding
	config                udp.Config
}

// ports returns the configured listeners.
func (c *config) ports() []port {
	var ports []port
	add := func(block pipeline.Optional[udp.Config], p port) {
		if cfg, ok := block.Get(); ok {
			p.config = cfg
			ports = append(ports, p)
		}
	}
	add(c.Compact, port{name: "compact", model: "tracing", protocol: "compact", encoding: native.Compact})
	add(c.Binary, port{name: "binary", model: "tracing", protocol: "binary", encoding: native.Binary})
	add(c.Zipkin, port{name: "zipkin", model: "zipkin", protocol: "compact", encoding: native.Compact})
	return ports
}

// Factory returns the factory of receivers of type thriftudp.
func Factory() pipeline.Factory {
	return pipeline.Receiver("thriftudp", defaults, newReceiver).
		Doc("Receives spans in Thrift over UDP, as client libraries send them to an agent.")
}

type receiver struct {
	server.Listeners // provides Start, Stop and Addr
	clients          *clients
	memory           int64 // see MaxMemory
}

var (
	_ pipeline.MemoryUser   = (*receiver)(nil)
	_ pipeline.TenantBypass = (*config)(nil)
)

func newReceiver(set pipeline.Settings, c config, next pipeline.Consumer) (*receiver, error) {
	clients, err := newClients(set, c.MaxClients)
	if err != nil {
		return nil, err
	}
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	r := &receiver{Listeners: server.Listeners{}, clients: clients, memory: clients.maxMemory() + int64(cap(slots))*workMemory}
	for _, p := range c.ports() {
		l, err := newListener(set, p, c.Tenant, clients, slots, next)
		if err != nil {
			return nil, err
		}
		r.Listeners[p.name] = l.server
		r.memory += l.server.MaxMemory()
	}
	return r, nil
}

// MaxMemory returns the maximum memory of listeners, translations and client statistics in bytes.
// The results of translations are not included; they are charged to the budget.
func (r *receiver) MaxMemory() int64 { return r.memory }

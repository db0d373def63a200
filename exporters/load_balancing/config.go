package loadbalancing

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

type config struct {
	RoutingKey        string         `yaml:"routing_key" doc:"Property that selects the backend; spans with equal values go to the same one: traceID, service (of the resource) or attributes (in routing_attributes)."`
	RoutingAttributes []string       `yaml:"routing_attributes" doc:"Attributes for routing_key: attributes, looked up in resource, scope and span, in this order. span.kind and span.name stand for the fields of the span."`
	Resolver          resolverConfig `yaml:"resolver" doc:"Source of the addresses of the backends: static or dns."`
	Protocol          protocolConfig `yaml:"protocol" doc:"Protocol of the backends."`
	MaxBackends       int            `yaml:"max_backends" doc:"Maximum number of backends. A longer DNS response counts as a failed resolution."`
	pipeline.Delivery
}

type resolverConfig struct {
	Static pipeline.Optional[staticConfig] `yaml:"static" doc:"Fixed list of backends."`
	DNS    pipeline.Optional[dnsConfig]    `yaml:"dns" doc:"Backends at all addresses of a DNS name, for example of a headless service of Kubernetes."`

	_ struct{} `unsupported:"k8s" hint:"use dns with the name of a headless service: dns: {hostname: gateway.observability.svc.cluster.local}"`
	_ struct{} `unsupported:"aws_cloud_map" hint:"use dns with the DNS name of the service: dns: {hostname: gateway.namespace.local}"`
}

type staticConfig struct {
	Hostnames []string `yaml:"hostnames" doc:"Addresses of the backends: host:port, or host for port 4317. Each must lead to one process."`
}

type dnsConfig struct {
	Hostname string            `yaml:"hostname" doc:"DNS name. Each of its addresses is a backend."`
	Port     int               `yaml:"port" doc:"Port of the backends."`
	Interval pipeline.Duration `yaml:"interval" doc:"Time between two resolutions."`
	Timeout  pipeline.Duration `yaml:"timeout" doc:"Maximum duration of one resolution. After a failure, the backends stay the same."`
}

type protocolConfig struct {
	OTLP otlpConfig `yaml:"otlp" doc:"OTLP over gRPC."`
}

type otlpConfig struct {
	client.GRPCSettings
	client.NextHopConfig
	Timeout pipeline.Duration                       `yaml:"timeout" doc:"Replaces timeout of this exporter. 0 leaves it unchanged."`
	Retry   pipeline.Optional[pipeline.RetryConfig] `yaml:"retry_on_failure" doc:"Replaces retry_on_failure of this exporter."`
	Queue   pipeline.Optional[pipeline.QueueConfig] `yaml:"sending_queue" doc:"Default for sending_queue of this exporter."`

	_ struct{} `unsupported:"endpoint" hint:"delete the key; the addresses are those of resolver"`
}

const (
	defaultPort        = 4317
	defaultMaxBackends = 256
	// defaultConsumers is higher than for other exporters, because a batch with spans for a backend
	// that is down occupies a consumer until they are accepted.
	defaultConsumers = 100
)

func defaults() config {
	queue := pipeline.DefaultQueue()
	queue.NumConsumers = defaultConsumers
	delivery := pipeline.DefaultDelivery()
	delivery.Queue = pipeline.Absent(queue)
	grpc := client.DefaultGRPCConfig().GRPCSettings
	grpc.BalancerName = "pick_first" // all spans of a trace go to the same address of a backend
	return config{
		RoutingKey:  byTraceID,
		MaxBackends: defaultMaxBackends,
		Resolver: resolverConfig{
			Static: pipeline.Absent(staticConfig{}),
			DNS: pipeline.Absent(dnsConfig{Port: defaultPort, Interval: pipeline.Duration(5 * time.Second),
				Timeout: pipeline.Duration(time.Second)}),
		},
		Protocol: protocolConfig{otlpConfig{GRPCSettings: grpc, NextHopConfig: client.DefaultNextHopConfig(),
			Retry: pipeline.Absent(delivery.Retry), Queue: delivery.Queue}},
		Delivery: delivery,
	}
}

// Connections returns the connections to the backends.
func (c *config) Connections() (all []client.GRPCConfig) {
	add := func(endpoint string) {
		all = append(all, client.GRPCConfig{Endpoint: endpoint, GRPCSettings: c.Protocol.OTLP.GRPCSettings})
	}
	if static, on := c.Resolver.Static.Get(); on {
		for _, hostname := range static.Hostnames {
			add(withPort(hostname))
		}
	}
	if dns, on := c.Resolver.DNS.Get(); on {
		add("dns:///" + net.JoinHostPort(dns.Hostname, strconv.Itoa(dns.Port)))
	}
	return all
}

var _ client.Connector = (*config)(nil)

// DeliveryConfig returns the delivery of this exporter, with the values below protocol.
func (c *config) DeliveryConfig() *pipeline.Delivery {
	d := c.Delivery
	if c.Protocol.OTLP.Timeout > 0 {
		d.Timeout = c.Protocol.OTLP.Timeout
	}
	if retry, set := c.Protocol.OTLP.Retry.Get(); set {
		d.Retry = retry
	}
	if _, set := d.Queue.Get(); !set {
		d.Queue = c.Protocol.OTLP.Queue
	}
	return &d
}

// KeepsOnDisk reports whether there is a queue on disk.
func (c *config) KeepsOnDisk() bool { return c.DeliveryConfig().KeepsOnDisk() }

// Validate reports an invalid routing and invalid limits.
func (c *config) Validate() error {
	var errs []error
	switch c.RoutingKey {
	case byTraceID, byService:
		if len(c.RoutingAttributes) > 0 {
			errs = append(errs, pipeline.BadKey("routing_attributes", "has no effect with routing_key: %s; write routing_key: attributes",
				c.RoutingKey))
		}
	case byAttributes:
		if len(c.RoutingAttributes) == 0 {
			errs = append(errs, pipeline.BadKey("routing_attributes", "must be set, because routing_key is attributes"))
		}
	case "resource", "metric", "streamID":
		errs = append(errs, pipeline.BadKey("routing_key", "%s is for metrics and logs; use traceID, service or attributes", c.RoutingKey))
	default:
		errs = append(errs, pipeline.BadKey("routing_key", "unknown routing key %q; use traceID, service or attributes", c.RoutingKey))
	}
	if c.MaxBackends < 1 {
		errs = append(errs, pipeline.BadKey("max_backends", "must be at least 1, not %d", c.MaxBackends))
	}
	if static, on := c.Resolver.Static.Get(); on && len(static.Hostnames) > c.MaxBackends {
		errs = append(errs, pipeline.BadKey("resolver::static::hostnames", "has %d backends; max_backends is %d",
			len(static.Hostnames), c.MaxBackends))
	}
	return errors.Join(errs...)
}

// Validate checks that there is exactly one resolver.
func (c *resolverConfig) Validate() error {
	_, static := c.Static.Get()
	_, dns := c.DNS.Get()
	switch {
	case static && dns:
		return pipeline.BadKey("", "static and dns are both set; delete one of them")
	case !static && !dns:
		return pipeline.BadKey("", "static or dns must be set")
	}
	return nil
}

// Validate reports invalid and duplicate addresses.
func (c *staticConfig) Validate() error {
	if len(c.Hostnames) == 0 {
		return pipeline.BadKey("hostnames", "must list at least one backend")
	}
	var errs []error
	var seen []string
	for i, h := range c.Hostnames {
		key := "hostnames::" + strconv.Itoa(i)
		address := withPort(h)
		if err := client.CheckAddress(address); err != nil {
			errs = append(errs, pipeline.BadKey(key, "%v", err))
		} else if slices.Contains(seen, address) {
			errs = append(errs, pipeline.BadKey(key, "%s is listed twice", address))
		}
		seen = append(seen, address)
	}
	return errors.Join(errs...)
}

// withPort adds the default port to an address without port.
func withPort(address string) string {
	if _, _, err := pipeline.SplitHostPort(address); err == nil {
		return address
	}
	host := strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	return net.JoinHostPort(host, strconv.Itoa(defaultPort))
}

// Validate reports a missing name, and times and a port that are out of range.
func (c *dnsConfig) Validate() error {
	var errs []error
	if c.Hostname == "" || strings.ContainsAny(c.Hostname, ":/ ") {
		errs = append(errs, pipeline.BadKey("hostname", "%q is not a DNS name; write a name without scheme and port", c.Hostname))
	}
	if c.Port < 1 || c.Port > 65535 {
		errs = append(errs, pipeline.BadKey("port", "must be from 1 to 65535, not %d", c.Port))
	}
	if c.Interval <= 0 {
		errs = append(errs, pipeline.BadKey("interval", "must be above 0"))
	}
	if c.Timeout <= 0 {
		errs = append(errs, pipeline.BadKey("timeout", "must be above 0"))
	}
	return errors.Join(errs...)
}

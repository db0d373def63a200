package loadbalancing

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
)

type receiver struct{}

func (receiver) Start(context.Context) error { return nil }

func load(exporter string) error {
	source := pipeline.Receiver("source", func() struct{} { return struct{}{} },
		func(pipeline.Settings, struct{}, pipeline.Consumer) (receiver, error) { return receiver{}, nil })
	text := "receivers: {source: }\nservice: {pipelines: {traces: {receivers: [source], exporters: [load_balancing]}}}\n" +
		"exporters:\n  load_balancing:\n    " + strings.ReplaceAll(strings.TrimSpace(exporter), "\n", "\n    ")
	_, err := app.Load(app.LoadOptions{Factories: []pipeline.Factory{Factory(), source}, Files: []string{"c.yaml"}, Strict: true,
		ReadFile: func(string) ([]byte, error) { return []byte(text), nil }})
	return err
}

// The config of the exporter of the OpenTelemetry Collector can be used unchanged.
func TestCollectorConfig(t *testing.T) {
	for _, text := range []string{`
routing_key: service
protocol:
  otlp:
    timeout: 1s
    tls: {insecure: true}
    sending_queue: {enabled: true, num_consumers: 4, queue_size: 5000}
    retry_on_failure: {enabled: true, max_elapsed_time: 60s}
resolver:
  static:
    hostnames: [backend-1:4317, backend-2]
`, `
timeout: 10s
retry_on_failure: {enabled: true}
sending_queue: {enabled: true}
resolver: {dns: {hostname: otelcol-headless.observability.svc.cluster.local, port: "4317", interval: 10s, timeout: 2s}}
`, `
routing_key: attributes
routing_attributes: [service.name, span.kind]
resolver: {dns: {hostname: gateways}}
`} {
		if err := load(text); err != nil {
			t.Errorf("%s\n%v", text, err)
		}
	}
}

// A queue on disk is recognized at both places where it can be configured.
func TestQueueOnDisk(t *testing.T) {
	queue := pipeline.DefaultQueue()
	queue.Storage = "disk"
	for name, change := range map[string]func(*config){
		"exporter": func(c *config) { c.Queue = pipeline.Present(queue) },
		"protocol": func(c *config) { c.Protocol.OTLP.Queue = pipeline.Present(queue) },
	} {
		c := defaults()
		if c.KeepsOnDisk() {
			t.Error("the default is a queue on disk")
		}
		if change(&c); !c.KeepsOnDisk() {
			t.Errorf("%s: queue on disk is not recognized", name)
		}
	}
}

func TestWrongConfig(t *testing.T) {
	const static = "\nresolver: {static: {hostnames: [a]}}"
	for _, c := range []struct{ text, want string }{
		{"routing_key: traceID",
			"resolver: static or dns must be set"},
		{"resolver: {static: {hostnames: [a]}, dns: {hostname: b}}",
			"resolver: static and dns are both set; delete one of them"},
		{"resolver: {k8s: {service: gateway.observability, ports: [4317]}}",
			"resolver.k8s: not supported; use dns with the name of a headless service"},
		{"resolver: {aws_cloud_map: {namespace: a}}",
			"resolver.aws_cloud_map: not supported; use dns with the DNS name of the service"},
		{"resolver: {static: {hostnames: []}}",
			"hostnames: must list at least one backend"},
		{"resolver: {static: {hostnames: [a, 'a:4317']}}",
			"hostnames.1: a:4317 is listed twice"},
		{"resolver: {static: {hostnames: ['http://a:1']}}",
			"is not a valid address"},
		{"resolver: {dns: {hostname: 'a:4317', port: 0, interval: 0}}",
			`hostname: "a:4317" is not a DNS name`},
		{"routing_key: streamID" + static,
			"routing_key: streamID is for metrics and logs; use traceID, service or attributes"},
		{"routing_key: trace" + static,
			`routing_key: unknown routing key "trace"`},
		{"routing_key: attributes" + static,
			"routing_attributes: must be set, because routing_key is attributes"},
		{"routing_attributes: [a]" + static,
			"routing_attributes: has no effect with routing_key: traceID"},
		{"protocol: {otlp: {endpoint: 'a:4317'}}" + static,
			"protocol.otlp.endpoint: not supported; delete the key"},
		{"protocol: {otlp: {connect_timeout: 0s}}" + static,
			`protocol.otlp.connect_timeout: must be above 0`},
		{"max_backends: 1\nresolver: {static: {hostnames: [a, b]}}",
			"hostnames: has 2 backends; max_backends is 1"},
	} {
		if err := load(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot %v\nwant %s", c.text, err, c.want)
		}
	}
}

// Keys below protocol::otlp are the keys of the exporter.
func TestDeliveryBelowProtocol(t *testing.T) {
	c := defaults()
	c.Timeout = pipeline.Duration(10 * time.Second)
	if d := c.DeliveryConfig(); d.Timeout != c.Timeout || d.Retry != c.Retry {
		t.Errorf("%+v", d)
	}
	o := &c.Protocol.OTLP
	o.Timeout = pipeline.Duration(time.Second)
	o.Retry.TurnOn().(*pipeline.RetryConfig).Enabled = false
	o.Queue.TurnOn().(*pipeline.QueueConfig).Storage = "disk"
	d := c.DeliveryConfig()
	if q, on := d.Queue.Get(); d.Timeout != o.Timeout || d.Retry.Enabled || !on || q.Storage != "disk" || q.NumConsumers != defaultConsumers {
		t.Errorf("%+v", d)
	}
	c.Queue.TurnOn().(*pipeline.QueueConfig).QueueSize = 7
	if q, on := c.DeliveryConfig().Queue.Get(); !on || q.QueueSize != 7 || q.Storage != "" {
		t.Errorf("%+v", q)
	}
}

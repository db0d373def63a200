package config

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/selfexport"
)

// Service is the `service` section.
type Service struct {
	DataDir        string             `yaml:"data_dir" path:"data" doc:"Folder for the files of all components. Each component has its own subfolder."`
	Extensions     []pipeline.ID      `yaml:"extensions" doc:"Extensions to start."`
	Pipelines      map[string]Members `yaml:"pipelines" doc:"Pipelines by id: traces, or traces/ and a name, for example traces/internal. Pipelines called logs, or logs/ and a name, pass on log records."`
	Limits         Limits             `yaml:"limits" doc:"Limits of the whole process."`
	Telemetry      Telemetry          `yaml:"telemetry" doc:"Logs, metrics and spans of the process itself."`
	DeadLetterDir  string             `yaml:"dead_letter_dir" path:"data" doc:"Folder for batches that the next hop or store refused permanently after they were acknowledged. If empty, such batches are discarded."`
	DeadLetterSize pipeline.ByteSize  `yaml:"dead_letter_size" doc:"Maximum size of dead_letter_dir. When it is full, refused batches are discarded and counted."`
	StopTimeout    pipeline.Duration  `yaml:"stop_timeout" doc:"Maximum duration of a shutdown, in which accepted requests finish and queues are emptied."`
	Watch          bool               `yaml:"watch" doc:"Whether to reload the configuration, as after SIGHUP, when one of its files changes."`
	WatchInterval  pipeline.Duration  `yaml:"watch_interval" doc:"Interval at which configuration files are checked. A changed file is loaded when it has not changed for one interval."`
}

// Members lists the components of a pipeline.
type Members struct {
	Receivers  []pipeline.ID `yaml:"receivers" doc:"Receivers of the pipeline, and connectors that feed it."`
	Processors []pipeline.ID `yaml:"processors" doc:"Processors that spans pass through, in this order."`
	Exporters  []pipeline.ID `yaml:"exporters" doc:"Exporters of the pipeline, and connectors that feed other pipelines. Each of them receives all spans."`
}

// Limits is the `limits` block of the service section.
type Limits struct {
	Inflight    pipeline.ByteSize `yaml:"inflight" doc:"Maximum total size of the requests in memory. Further requests are refused as overloaded. The default is a seventh of the available memory, at most 256MiB."`
	Connections int               `yaml:"connections" doc:"Maximum number of open TCP connections of all listeners. Further connections are closed, except the first 16 of each listener. The default is one for each 336KiB of the available memory, at most 10000; a connection takes about 24KiB."`
	QueryMemory pipeline.ByteSize `yaml:"query_memory" doc:"Maximum memory of all running queries, their responses, and spans buffered for live tails. Further queries are refused as overloaded; clients can retry them. 0 means a quarter of the soft memory limit."`
	Held        pipeline.ByteSize `yaml:"held" doc:"Maximum memory of the spans that processors such as tail_sampling hold, estimated from their parts. Further spans are refused as overloaded. 0 means a quarter of the memory of the machine or its cgroup."`
	HeldTenants int               `yaml:"held_tenants" doc:"Maximum number of tenants, besides the default tenant, whose spans a processor such as tail_sampling holds. Spans of further tenants are refused as overloaded."`
	HeldRetry   pipeline.Duration `yaml:"held_retry" doc:"Maximum time for which spans that a processor has held are retried after a temporary error of the next component. After that, they are dropped and counted."`
	MaxWait     pipeline.Duration `yaml:"max_wait" doc:"Maximum time that a client waits for the response to its spans. After it, or shortly before the deadline of a gRPC call, the response is 503 with Retry-After, or UNAVAILABLE with RetryInfo. 0 disables the limit."`
}

// Telemetry is the `telemetry` block of the service section.
type Telemetry struct {
	Logs     Logs              `yaml:"logs" doc:"Log of the process, on standard error."`
	Metrics  Metrics           `yaml:"metrics" doc:"Metrics that the admin extension serves on /metrics."`
	Traces   selfexport.Config `yaml:"traces" doc:"Spans that the process records about its own work: requests, pipelines and queries."`
	Resource map[string]string `yaml:"resource" doc:"Attributes of the process in these spans. service.name (tracing), service.version and service.instance.id have defaults; an empty value removes the attribute."`
}

// Metrics is the `metrics` block of the telemetry block.
type Metrics struct {
	CompatMetrics bool `yaml:"compat_metrics" doc:"Whether to also serve metrics under their established names: jaeger_*, with the suffix _total for counters."`
}

// Logs is the `logs` block of the telemetry block.
type Logs struct {
	Level    string `yaml:"level" doc:"Minimum level of log lines: debug, info, warn or error."`
	Encoding string `yaml:"encoding" doc:"Format of log lines: json, console or auto (console on a terminal)."`
}

func defaultService() Service {
	return Service{
		DataDir: "./data",
		Limits: Limits{Inflight: pipeline.MemoryShare(inflightPart, maxDefaultInflight), Connections: defaultConnections(),
			HeldTenants: 100, HeldRetry: pipeline.Duration(time.Minute), MaxWait: pipeline.Duration(8 * time.Second)},
		Telemetry:      Telemetry{Logs: Logs{Level: "info", Encoding: "auto"}, Traces: selfexport.DefaultConfig()},
		DeadLetterSize: 1 << 30,
		StopTimeout:    pipeline.Duration(30 * time.Second),
		WatchInterval:  pipeline.Duration(5 * time.Second),
	}
}

// ZapLevel returns the level.
func (c *Logs) ZapLevel() (zapcore.Level, error) {
	switch c.Level {
	case "debug", "info", "warn", "error":
		return zapcore.ParseLevel(c.Level)
	}
	return 0, fmt.Errorf("%q is not a log level; write debug, info, warn or error", c.Level)
}

// Validate checks level and encoding.
func (c *Logs) Validate() error {
	var errs []error
	if _, err := c.ZapLevel(); err != nil {
		errs = append(errs, pipeline.BadKey("level", "%v", err))
	}
	if c.Encoding != "json" && c.Encoding != "console" && c.Encoding != "auto" {
		errs = append(errs, pipeline.BadKey("encoding", "%q is not an encoding; write json, console or auto", c.Encoding))
	}
	return errors.Join(errs...)
}

// Validate checks the watch interval.
func (c *Service) Validate() error {
	if c.WatchInterval <= 0 {
		return pipeline.BadKey("watch_interval", "must be above 0; to ignore changes, leave out watch")
	}
	return nil
}

// Defaults of limits.inflight and limits.connections depend on the available memory: inflight is
// 1/inflightPart of it, and connections may take 1/connectionsPart.
const (
	inflightPart          = 7
	maxDefaultInflight    = 256 << 20
	connectionsPart       = 14
	maxDefaultConnections = 10_000
)

// ConnectionMemory is the approximate memory of an open connection in bytes: the buffers and stacks
// of the program and of the kernel.
const ConnectionMemory = 24 << 10

func defaultConnections() int {
	const most = maxDefaultConnections * ConnectionMemory
	return int(pipeline.MemoryShare(connectionsPart, most) / ConnectionMemory)
}

// Minimums of limits.inflight, limits.held and limits.query_memory.
const (
	minInflight    = 1 << 20
	minHeld        = 1 << 20
	minQueryMemory = 16 << 20
)

// Validate checks the limits.
func (c *Limits) Validate() error {
	if c.Inflight < minInflight {
		return pipeline.BadKey("inflight", "must be at least 1MiB; smaller budgets refuse every request")
	}
	if c.Connections < 1 {
		return pipeline.BadKey("connections", "must be above 0")
	}
	if c.Held != 0 && c.Held < minHeld {
		return pipeline.BadKey("held", "must be at least %s, or 0 for a quarter of the memory", pipeline.ByteSize(minHeld))
	}
	if c.HeldTenants < 0 {
		return pipeline.BadKey("held_tenants", "must not be below 0")
	}
	if c.QueryMemory != 0 && c.QueryMemory < minQueryMemory {
		return pipeline.BadKey("query_memory", "must be at least %s, or 0 for a quarter of the soft memory limit",
			pipeline.ByteSize(minQueryMemory))
	}
	return nil
}

// NeedsRestart returns an error if next differs from c in settings that a running process cannot
// change.
func (c *Service) NeedsRestart(next *Service) error {
	fixed := func(key, before, after string) error {
		if before == after {
			return nil
		}
		return fmt.Errorf("service::%s: cannot change from %q to %q while the process runs; restart it", key, before, after)
	}
	return errors.Join(fixed("data_dir", c.DataDir, next.DataDir),
		fixed("limits::inflight", c.Limits.Inflight.String(), next.Limits.Inflight.String()),
		fixed("limits::held_tenants", fmt.Sprint(c.Limits.HeldTenants), fmt.Sprint(next.Limits.HeldTenants)),
		fixed("telemetry::logs::encoding", c.Telemetry.Logs.Encoding, next.Telemetry.Logs.Encoding))
}

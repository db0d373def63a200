package live

import (
	"errors"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
)

// Config are the keys below `tail`.
type Config struct {
	MaxClients    int               `yaml:"max_clients" doc:"Maximum number of concurrent live tails. One client address or tenant can use as many as remain free, so at most half. 0 disables the live tail."`
	MaxRate       int               `yaml:"max_spans_per_second" doc:"Maximum number of spans per second that are sent to one client. Of further spans, the client gets only the number."`
	MaxExamined   int               `yaml:"max_examined_per_second" doc:"Maximum number of spans per second that are examined for one client. Of further spans, the client gets only the number."`
	MaxDuration   pipeline.Duration `yaml:"max_duration" doc:"Maximum duration of a live-tail request."`
	MaxQueue      pipeline.ByteSize `yaml:"max_queue_size" doc:"Maximum size of the spans buffered for one client, which counts toward service.limits.query_memory. A slow client misses further spans and gets their number."`
	Quiet         pipeline.Duration `yaml:"quiet" doc:"Time without a new span after which the summary of a trace is sent."`
	MaxWait       pipeline.Duration `yaml:"max_wait" doc:"Maximum time after which the summary of a growing trace is sent, and resent while spans arrive."`
	MaxTraceRate  int               `yaml:"max_traces_per_second" doc:"Maximum number of trace summaries per second for one client. If more traces match, a sample is sent."`
	MaxTraces     int               `yaml:"max_traces" doc:"Maximum number of traces watched for one client. If more match, a sample is watched. Each reserves 1 KiB of service.limits.query_memory."`
	MaxTraceSpans int               `yaml:"max_trace_spans" doc:"Maximum number of spans of a trace whose summary is sent. Of longer traces, clients get only the number."`
}

// DefaultConfig returns the default settings.
func DefaultConfig() Config {
	return Config{
		MaxClients: 16, MaxRate: 100, MaxExamined: 50_000, MaxDuration: pipeline.Duration(15 * time.Minute), MaxQueue: 4 << 20,
		Quiet: pipeline.Duration(2 * time.Second), MaxWait: pipeline.Duration(30 * time.Second),
		MaxTraceRate: 20, MaxTraces: 2000, MaxTraceSpans: 10_000,
	}
}

// Validate checks the limits.
func (c *Config) Validate() error {
	var errs []error
	for _, limit := range []struct {
		key   string
		value int
	}{
		{"max_spans_per_second", c.MaxRate}, {"max_examined_per_second", c.MaxExamined}, {"max_queue_size", int(c.MaxQueue)},
		{"max_duration", int(c.MaxDuration)}, {"quiet", int(c.Quiet)}, {"max_wait", int(c.MaxWait)},
		{"max_traces_per_second", c.MaxTraceRate}, {"max_traces", c.MaxTraces}, {"max_trace_spans", c.MaxTraceSpans},
	} {
		if limit.value <= 0 {
			errs = append(errs, pipeline.BadKey(limit.key, "must be above 0"))
		}
	}
	if c.MaxClients < 0 {
		errs = append(errs, pipeline.BadKey("max_clients", "must not be below 0"))
	}
	return errors.Join(errs...)
}

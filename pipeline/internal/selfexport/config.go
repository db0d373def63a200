package selfexport

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// Config is the `traces` block of service.telemetry.
type Config struct {
	Level       string                     `yaml:"level" doc:"Level of detail: none records no spans; basic, normal and detailed record the same spans."`
	Processors  []Processor                `yaml:"processors" doc:"Processors that export the spans. Without processors, self-tracing is off."`
	Sampler     pipeline.Optional[Sampler] `yaml:"sampler" doc:"Sampler of traces; only one kind can be set. Without the block, requests are traced unless their client decided not to sample the trace."`
	Propagators []string                   `yaml:"propagators" doc:"Formats of trace contexts in requests: tracecontext (W3C) and b3. If empty, trace contexts are neither read nor sent."`
	Limits      Limits                     `yaml:"limits" doc:"Limits of each span."`
}

// Processor is an item of `processors`. One of its blocks is set.
type Processor struct {
	Batch  pipeline.Optional[Batch]  `yaml:"batch" doc:"Exports spans in batches."`
	Simple pipeline.Optional[Simple] `yaml:"simple" doc:"Exports each span when it ends; the traced work waits for the export. For tests."`
}

// Batch is the block `batch` of a processor.
type Batch struct {
	ScheduleDelay      int      `yaml:"schedule_delay" doc:"Maximum time in milliseconds between two exports. 0 means 5000."`
	ExportTimeout      int      `yaml:"export_timeout" doc:"Maximum duration of an export in milliseconds. 0 means 30000."`
	MaxQueueSize       int      `yaml:"max_queue_size" doc:"Maximum number of spans that wait for an export. Further ones are dropped. 0 means 2048."`
	MaxExportBatchSize int      `yaml:"max_export_batch_size" doc:"Maximum number of spans in one export. 0 means 512."`
	Exporter           Exporter `yaml:"exporter" doc:"Destination of the spans."`
}

// Simple is the block `simple` of a processor.
type Simple struct {
	Exporter Exporter `yaml:"exporter" doc:"Destination of the spans."`
}

// Exporter is the `exporter` block of a processor. One of its blocks is set.
type Exporter struct {
	OTLP    pipeline.Optional[OTLP]     `yaml:"otlp" doc:"Sends spans in OTLP, also to a receiver of this process."`
	Console pipeline.Optional[struct{}] `yaml:"console" doc:"Writes spans to standard output as JSON."`
}

// OTLP is the block `otlp` of an exporter.
type OTLP struct {
	Protocol          string          `yaml:"protocol" doc:"Protocol: grpc or http/protobuf."`
	Endpoint          string          `yaml:"endpoint" doc:"URL of the destination, for example http://localhost:4318 (without TLS). Over HTTP, the default path is /v1/traces."`
	Insecure          bool            `yaml:"insecure" doc:"Whether an endpoint without http:// or https:// is used without TLS."`
	Certificate       string          `yaml:"certificate" path:"file" doc:"File with the certificate authorities that verify the server, instead of the system's."`
	ClientCertificate string          `yaml:"client_certificate" path:"file" doc:"File with the certificate of this client."`
	ClientKey         string          `yaml:"client_key" path:"file" doc:"File with the private key of client_certificate."`
	Compression       string          `yaml:"compression" doc:"Compression of requests: gzip or none."`
	Timeout           int             `yaml:"timeout" doc:"Maximum duration of a request with its retries in milliseconds. 0 means 10000."`
	Headers           []Header        `yaml:"headers" doc:"Headers of requests."`
	HeadersList       pipeline.Secret `yaml:"headers_list" doc:"Headers as one string, name=value,name=value. The key headers takes precedence."`
}

// Header is an item of `headers`.
type Header struct {
	Name  string          `yaml:"name" doc:"Name of the header."`
	Value pipeline.Secret `yaml:"value" doc:"Value of the header."`
}

// SamplerKinds are the kinds of samplers that do not depend on parents.
type SamplerKinds struct {
	AlwaysOn          pipeline.Optional[struct{}] `yaml:"always_on" doc:"Samples every trace."`
	AlwaysOff         pipeline.Optional[struct{}] `yaml:"always_off" doc:"Samples no trace."`
	TraceIDRatioBased pipeline.Optional[Ratio]    `yaml:"trace_id_ratio_based" doc:"Samples a share of traces, selected by trace id."`
}

// FlatSampler is a sampler that does not depend on parents. One of its blocks is set.
type FlatSampler struct{ SamplerKinds }

// Ratio is the `trace_id_ratio_based` block of a sampler.
type Ratio struct {
	Ratio float64 `yaml:"ratio" doc:"Share of traces, from 0 to 1."`
}

// Sampler is the block `sampler`.
type Sampler struct {
	SamplerKinds
	ParentBased pipeline.Optional[ParentBased] `yaml:"parent_based" doc:"Follows the decision of the parent. root decides for spans without a parent."`
}

// ParentBased is the `parent_based` block of a sampler. By default, root and the samplers of
// sampled parents sample everything, the others nothing.
type ParentBased struct {
	Root                   pipeline.Optional[FlatSampler] `yaml:"root" doc:"Sampler of spans without a parent. Without it, all are sampled."`
	RemoteParentSampled    pipeline.Optional[FlatSampler] `yaml:"remote_parent_sampled" doc:"Sampler of requests whose client has sampled the trace. By default, they are sampled."`
	RemoteParentNotSampled pipeline.Optional[FlatSampler] `yaml:"remote_parent_not_sampled" doc:"Sampler of requests whose client has not sampled the trace. By default, they are not sampled."`
	LocalParentSampled     pipeline.Optional[FlatSampler] `yaml:"local_parent_sampled" doc:"Sampler of spans whose parent is in this process and sampled. By default, they are sampled."`
	LocalParentNotSampled  pipeline.Optional[FlatSampler] `yaml:"local_parent_not_sampled" doc:"Sampler of spans whose parent is in this process and not sampled. By default, they are not sampled."`
}

// Limits is the `limits` block. 0 means the default of the SDK.
type Limits struct {
	AttributeCount       int `yaml:"attribute_count_limit" doc:"Maximum number of attributes of a span. 0 means 128."`
	AttributeValueLength int `yaml:"attribute_value_length_limit" doc:"Maximum length of a string attribute in characters. 0 disables the limit."`
	EventCount           int `yaml:"event_count_limit" doc:"Maximum number of events of a span. 0 means 128."`
	EventAttributeCount  int `yaml:"event_attribute_count_limit" doc:"Maximum number of attributes of an event. 0 means 128."`
	LinkCount            int `yaml:"link_count_limit" doc:"Maximum number of links of a span. 0 means 128."`
	LinkAttributeCount   int `yaml:"link_attribute_count_limit" doc:"Maximum number of attributes of a link. 0 means 128."`
}

const (
	levelNone        = "none"
	propagatorW3C    = "tracecontext"
	propagatorB3     = "b3"
	protocolGRPC     = "grpc"
	protocolHTTP     = "http/protobuf"
	compressionGzip  = "gzip"
	compressionNone  = "none"
	oneExporterOf    = "must have one of otlp and console"
	oneProcessorOf   = "must have one of batch and simple"
	oneSamplerOf     = "must have one of always_on, always_off and trace_id_ratio_based"
	oneRootSamplerOf = "must have one of always_on, always_off, trace_id_ratio_based and parent_based"
)

// DefaultConfig returns the default config, with which self-tracing is off.
func DefaultConfig() Config {
	return Config{Level: "basic", Propagators: []string{propagatorW3C}}
}

// On reports whether spans are made.
func (c *Config) On() bool { return c.Level != levelNone && len(c.Processors) > 0 }

// Destinations returns the settings of all exporters that send spans to other processes.
func (c *Config) Destinations() (all []OTLP) {
	if !c.On() {
		return nil
	}
	for i := range c.Processors {
		batch, _ := c.Processors[i].Batch.Get()
		simple, _ := c.Processors[i].Simple.Get()
		for _, e := range []Exporter{batch.Exporter, simple.Exporter} {
			if o, on := e.OTLP.Get(); on {
				all = append(all, o)
			}
		}
	}
	return all
}

// Validate checks level and propagators.
func (c *Config) Validate() error {
	var errs []error
	if levels := []string{levelNone, "basic", "normal", "detailed"}; !slices.Contains(levels, c.Level) {
		errs = append(errs, pipeline.BadKey("level", "%q is not a level of traces; write none or basic", c.Level))
	}
	for i, p := range c.Propagators {
		if p != propagatorW3C && p != propagatorB3 {
			errs = append(errs, pipeline.BadKey(fmt.Sprintf("propagators::%d", i), "unknown propagator %q; write tracecontext or b3", p))
		}
	}
	return errors.Join(errs...)
}

// Validate checks that no limit is below 0.
func (l *Limits) Validate() error {
	return notNegative(map[string]int{"attribute_count_limit": l.AttributeCount, "attribute_value_length_limit": l.AttributeValueLength,
		"event_count_limit": l.EventCount, "event_attribute_count_limit": l.EventAttributeCount,
		"link_count_limit": l.LinkCount, "link_attribute_count_limit": l.LinkAttributeCount})
}

func notNegative(values map[string]int) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if values[key] < 0 {
			errs = append(errs, pipeline.BadKey(key, "must not be below 0"))
		}
	}
	return errors.Join(errs...)
}

// Validate checks that one kind of processor is set.
func (p *Processor) Validate() error { return oneOf(oneProcessorOf, isOn(&p.Batch), isOn(&p.Simple)) }

// Validate checks that one kind of exporter is set.
func (e *Exporter) Validate() error { return oneOf(oneExporterOf, isOn(&e.OTLP), isOn(&e.Console)) }

// Validate checks the sizes.
func (b *Batch) Validate() error {
	err := notNegative(map[string]int{"schedule_delay": b.ScheduleDelay, "export_timeout": b.ExportTimeout,
		"max_queue_size": b.MaxQueueSize, "max_export_batch_size": b.MaxExportBatchSize})
	if err != nil {
		return err
	}
	if b.MaxQueueSize > 0 && b.MaxExportBatchSize > b.MaxQueueSize {
		return pipeline.BadKey("max_export_batch_size", "must not exceed max_queue_size (%d)", b.MaxQueueSize)
	}
	return nil
}

// Validate checks the address and how it is used.
func (o *OTLP) Validate() error {
	var errs []error
	if o.Protocol != protocolGRPC && o.Protocol != protocolHTTP {
		errs = append(errs, pipeline.BadKey("protocol", "%q is not a protocol; write grpc or http/protobuf", o.Protocol))
	}
	if o.Endpoint == "" {
		errs = append(errs, pipeline.BadKey("endpoint", "must be set; write a URL, for example http://localhost:4318"))
	} else if _, err := o.url(); err != nil {
		errs = append(errs, pipeline.BadKey("endpoint", "%v", err))
	}
	if !slices.Contains([]string{"", compressionNone, compressionGzip}, o.Compression) {
		errs = append(errs, pipeline.BadKey("compression", "%q is not supported; write gzip or none", o.Compression))
	}
	if (o.ClientCertificate == "") != (o.ClientKey == "") {
		errs = append(errs, pipeline.BadKey("client_certificate", "needs client_key, and client_key needs client_certificate"))
	}
	if o.Timeout < 0 {
		errs = append(errs, pipeline.BadKey("timeout", "must not be below 0"))
	}
	if _, err := o.headers(); err != nil {
		errs = append(errs, pipeline.BadKey("headers_list", "%v", err))
	}
	return errors.Join(errs...)
}

// url returns the endpoint with a scheme.
func (o *OTLP) url() (*url.URL, error) {
	text := o.Endpoint
	if !strings.Contains(text, "://") {
		text = map[bool]string{true: "http://", false: "https://"}[o.Insecure] + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, errors.New("not a valid URL; write, for example, http://localhost:4318, and credentials as headers")
	}
	return u, nil
}

// headers returns the headers of requests.
func (o *OTLP) headers() (map[string]string, error) {
	all := map[string]string{}
	for pair := range strings.SplitSeq(string(o.HeadersList), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, errors.New("must be a list name=value,name=value")
		}
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil {
			return nil, errors.New("has a value with an invalid % sequence")
		}
		all[strings.TrimSpace(name)] = value
	}
	for _, h := range o.Headers {
		all[h.Name] = string(h.Value)
	}
	return all, nil
}

// Validate checks that one kind of sampler is set.
func (s *FlatSampler) Validate() error { return oneOf(oneSamplerOf, s.kinds()...) }

func (s *SamplerKinds) kinds() []bool {
	return []bool{isOn(&s.AlwaysOn), isOn(&s.AlwaysOff), isOn(&s.TraceIDRatioBased)}
}

// Validate checks that one kind of sampler is set.
func (s *Sampler) Validate() error {
	return oneOf(oneRootSamplerOf, append(s.kinds(), isOn(&s.ParentBased))...)
}

// Validate checks the share.
func (r *Ratio) Validate() error {
	if !(r.Ratio >= 0 && r.Ratio <= 1) {
		return pipeline.BadKey("ratio", "must be from 0 to 1")
	}
	return nil
}

func isOn[T any](o *pipeline.Optional[T]) bool {
	_, on := o.Get()
	return on
}

// oneOf returns an error with a text unless one of the values is true.
func oneOf(text string, set ...bool) error {
	n := 0
	for _, on := range set {
		if on {
			n++
		}
	}
	if n != 1 {
		return pipeline.BadKey("", "%s", text)
	}
	return nil
}

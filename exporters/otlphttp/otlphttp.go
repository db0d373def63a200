// Package otlphttp is the exporter "otlphttp": it sends spans to a next hop in the OpenTelemetry protocol over HTTP. In protobuf, encoded
// spans pass through as the bytes they came in.
package otlphttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

const (
	tracesPath    = "/v1/traces"
	encodingProto = "proto"
	encodingJSON  = "json"
	typeProto     = "application/x-protobuf"
	typeJSON      = "application/json"
)

type config struct {
	client.HTTPConfig
	client.NextHopConfig
	pipeline.Delivery
	TracesEndpoint string `yaml:"traces_endpoint" doc:"URL to send to; empty is endpoint with /v1/traces behind it."`
	Encoding       string `yaml:"encoding" doc:"proto, which passes spans on as they are, or json."`
}

func defaults() config {
	return config{HTTPConfig: client.DefaultHTTPConfig(), NextHopConfig: client.DefaultNextHopConfig(), Delivery: pipeline.DefaultDelivery(),
		Encoding: encodingProto}
}

// Validate reports a missing URL and an unknown encoding.
func (c *config) Validate() error {
	var errs []error
	if c.TracesEndpoint != "" {
		errs = append(errs, client.ValidateURL("traces_endpoint", c.TracesEndpoint))
	} else if c.Endpoint == "" {
		errs = append(errs, pipeline.BadKey("endpoint", "must be set; write a URL, for example http://localhost:4318"))
	}
	if c.Encoding != encodingProto && c.Encoding != encodingJSON {
		errs = append(errs, pipeline.BadKey("encoding", "%q is not an encoding; write proto or json", c.Encoding))
	}
	return errors.Join(errs...)
}

func (c *config) url() string {
	if c.TracesEndpoint != "" {
		return c.TracesEndpoint
	}
	return strings.TrimSuffix(c.Endpoint, "/") + tracesPath
}

// Factory makes exporters of type otlphttp.
func Factory() pipeline.Factory {
	return pipeline.Exporter("otlphttp", defaults, newExporter).
		Doc("Sends spans to a next hop in the OpenTelemetry protocol over HTTP, in protobuf or JSON.")
}

type exporter struct {
	*client.HTTP
	set          pipeline.Settings
	hop          *client.NextHop
	url          string
	name         string // url without its query, which may hold a secret
	json         bool
	tenantHeader string
}

var (
	_ pipeline.Starter            = (*exporter)(nil)
	_ pipeline.Stopper            = (*exporter)(nil)
	_ pipeline.DurabilityReporter = (*exporter)(nil)
)

func newExporter(set pipeline.Settings, c config) (*exporter, error) {
	h, err := client.NewHTTP(set, c.HTTPConfig)
	if err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(c.url(), "?")
	return &exporter{HTTP: h, set: set, hop: client.NewNextHop(set), url: c.url(), name: name, json: c.Encoding == encodingJSON,
		tenantHeader: c.TenantHeader}, nil
}

// Keeps tells that the next hop has what was acknowledged.
func (e *exporter) Durability() pipeline.Durability { return pipeline.DurabilitySent }

// Consume makes one attempt to send b.
func (e *exporter) Consume(ctx context.Context, b *otlpdata.Batch) error {
	body, err := e.body(b)
	if err != nil {
		return pipeline.Permanent(err)
	}
	header := http.Header{"Content-Type": {typeProto}}
	if e.json {
		header.Set("Content-Type", typeJSON)
	}
	if tenant := b.Meta().Tenant; tenant != "" && e.tenantHeader != "" {
		header.Set(e.tenantHeader, tenant)
	}
	return e.hop.Record(ctx, e.send(ctx, header, body))
}

func (e *exporter) body(b *otlpdata.Batch) ([][]byte, error) {
	if !e.json {
		return b.Segments()
	}
	td, err := b.Traces()
	if err != nil {
		return nil, err
	}
	body, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding spans as JSON: %w", err)
	}
	return [][]byte{body}, nil
}

func (e *exporter) send(ctx context.Context, header http.Header, body [][]byte) error {
	answer, err := e.Post(ctx, e.url, header, body)
	if err == nil && answer.Status/100 != 2 {
		err = refusal(answer, e.set.Env.Now())
	}
	if err != nil {
		return fmt.Errorf("sending to %s: %w", e.name, err)
	}
	if mediaType(answer) == "text/html" {
		// A web server or a login page, which has no idea what it was sent: the spans are not where anybody will look for them.
		return fmt.Errorf("sending to %s: it answered with a web page, not as an OTLP receiver does; check endpoint and traces_endpoint", e.name)
	}
	resp := ptraceotlp.NewExportResponse()
	if err := decode(answer, resp.UnmarshalProto, resp.UnmarshalJSON); err != nil {
		return e.hop.Partial(0, fmt.Sprintf("the answer of %s is not one of OTLP: %v", e.name, err))
	}
	return e.hop.Partial(resp.PartialSuccess().RejectedSpans(), resp.PartialSuccess().ErrorMessage())
}

// Package otlphttp implements the `otlphttp` exporter. It sends spans to a next hop in the
// OpenTelemetry protocol over HTTP. With the encoding proto, it does not decode them.
package otlphttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
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
	TracesEndpoint string `yaml:"traces_endpoint" doc:"URL to which spans are sent. Empty means endpoint followed by /v1/traces."`
	Encoding       string `yaml:"encoding" doc:"Encoding of requests: proto or json. proto is faster: spans need not be decoded."`
}

func defaults() config {
	return config{HTTPConfig: client.DefaultHTTPConfig(), NextHopConfig: client.DefaultNextHopConfig(), Delivery: pipeline.DefaultDelivery(),
		Encoding: encodingProto}
}

// Validate reports missing or invalid URLs and an unknown encoding.
func (c *config) Validate() error {
	var errs []error
	if c.TracesEndpoint != "" {
		errs = append(errs, client.ValidateURL("traces_endpoint", c.TracesEndpoint))
	} else if c.Endpoint == "" {
		errs = append(errs, pipeline.BadKey("endpoint", "must be set; write a URL, for example http://localhost:4318"))
	}
	if c.Encoding != encodingProto && c.Encoding != encodingJSON {
		errs = append(errs, pipeline.BadKey("encoding", "unknown encoding %q; use proto or json", c.Encoding))
	}
	return errors.Join(errs...)
}

// url returns the URL for traces.
func (c *config) url() string {
	if c.TracesEndpoint != "" {
		return c.TracesEndpoint
	}
	return strings.TrimSuffix(c.Endpoint, "/") + tracesPath
}

// Factory returns the factory of exporters of type otlphttp.
func Factory() pipeline.Factory {
	return pipeline.Exporter("otlphttp", defaults, newExporter).
		Doc("Sends spans to a next hop in the OpenTelemetry protocol over HTTP, in protobuf or JSON.")
}

type exporter struct {
	client       *client.HTTP
	set          pipeline.Settings
	nextHop      *client.NextHop
	url          string
	name         string // url without its query, which may contain a secret
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
	return &exporter{client: h, set: set, nextHop: client.NewNextHop(set), url: c.url(), name: name, json: c.Encoding == encodingJSON,
		tenantHeader: c.TenantHeader}, nil
}

// Start reads certificates and tokens.
func (e *exporter) Start(ctx context.Context) error { return e.client.Start(ctx) }

// Stop closes idle connections.
func (e *exporter) Stop(ctx context.Context) error { return e.client.Stop(ctx) }

// Durability returns DurabilitySent: acknowledged spans are at the next hop.
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
	return e.nextHop.Record(ctx, e.send(ctx, header, body))
}

// body returns the encoded request in chunks.
func (e *exporter) body(b *otlpdata.Batch) ([][]byte, error) {
	if !e.json {
		chunks, err := b.Chunks()
		if err != nil {
			return nil, err
		}
		return slices.Collect(chunks), nil
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
	response, err := e.client.Post(ctx, e.url, header, body)
	if err == nil && response.Status/100 != 2 {
		err = responseError(response, e.set.Env.Now())
	}
	if err != nil {
		return fmt.Errorf("sending to %s: %w", e.name, err)
	}
	if mediaType(response) == "text/html" {
		// Probably a web server or a login page, which has not stored the spans.
		return fmt.Errorf("sending to %s: response is a web page, not an OTLP response; check endpoint and traces_endpoint", e.name)
	}
	resp := ptraceotlp.NewExportResponse()
	if err := decode(response, resp.UnmarshalProto, resp.UnmarshalJSON); err != nil {
		return e.nextHop.Partial(0, fmt.Sprintf("%s sent an invalid OTLP response: %v", e.name, err))
	}
	return e.nextHop.Partial(resp.PartialSuccess().RejectedSpans(), resp.PartialSuccess().ErrorMessage())
}

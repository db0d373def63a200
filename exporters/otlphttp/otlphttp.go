// Package otlphttp implements the `otlphttp` exporter. It sends spans and log records to a next
// hop in the OpenTelemetry protocol over HTTP. With the encoding proto, it does not decode them.
package otlphttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

const (
	tracesPath    = "/v1/traces"
	logsPath      = "/v1/logs"
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
	LogsEndpoint   string `yaml:"logs_endpoint" doc:"URL to which log records are sent. Empty means endpoint followed by /v1/logs."`
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
	}
	if c.LogsEndpoint != "" {
		errs = append(errs, client.ValidateURL("logs_endpoint", c.LogsEndpoint))
	}
	if c.Endpoint == "" && c.TracesEndpoint == "" && c.LogsEndpoint == "" {
		errs = append(errs, pipeline.BadKey("endpoint", "must be set; write a URL, for example http://localhost:4318"))
	}
	if c.Encoding != encodingProto && c.Encoding != encodingJSON {
		errs = append(errs, pipeline.BadKey("encoding", "unknown encoding %q; use proto or json", c.Encoding))
	}
	return errors.Join(errs...)
}

// url returns the URL for a signal, or "" if there is none.
func (c *config) url(s otlpdata.Signal) string {
	url, path := c.TracesEndpoint, tracesPath
	if s == otlpdata.SignalLogs {
		url, path = c.LogsEndpoint, logsPath
	}
	if url == "" && c.Endpoint != "" {
		url = strings.TrimSuffix(c.Endpoint, "/") + path
	}
	return url
}

// Factory returns the factory of exporters of type otlphttp.
func Factory() pipeline.Factory {
	return pipeline.Exporter("otlphttp", defaults, newExporter).Logs().
		Doc("Sends spans and log records to a next hop in the OpenTelemetry protocol over HTTP, in protobuf or JSON.")
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
	url := c.url(set.Signal)
	if url == "" {
		return nil, fmt.Errorf("%s_endpoint or endpoint must be set, because a pipeline of %[1]s has this exporter", set.Signal)
	}
	name, _, _ := strings.Cut(url, "?")
	return &exporter{client: h, set: set, nextHop: client.NewNextHop(set), url: url, name: name, json: c.Encoding == encodingJSON,
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
	body, err := encodeJSON(b)
	if err != nil {
		return nil, fmt.Errorf("encoding %s as JSON: %w", b.Meta().Signal.Items(), err)
	}
	return [][]byte{body}, nil
}

func encodeJSON(b *otlpdata.Batch) ([]byte, error) {
	if b.Meta().Signal == otlpdata.SignalLogs {
		ld, err := b.Logs()
		if err != nil {
			return nil, err
		}
		return plogotlp.NewExportRequestFromLogs(ld).MarshalJSON()
	}
	td, err := b.Traces()
	if err != nil {
		return nil, err
	}
	return ptraceotlp.NewExportRequestFromTraces(td).MarshalJSON()
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
		// Probably a web server or a login page, which has stored nothing.
		return fmt.Errorf("sending to %s: response is a web page, not an OTLP response; check endpoint and %s_endpoint", e.name, e.set.Signal)
	}
	rejected, message, err := partialSuccess(response, e.set.Signal)
	if err != nil {
		return e.nextHop.Partial(0, fmt.Sprintf("%s sent an invalid OTLP response: %v", e.name, err))
	}
	return e.nextHop.Partial(rejected, message)
}

// partialSuccess reads a response.
func partialSuccess(r client.Response, signal otlpdata.Signal) (rejected int64, message string, err error) {
	if signal == otlpdata.SignalLogs {
		resp := plogotlp.NewExportResponse()
		err = decode(r, resp.UnmarshalProto, resp.UnmarshalJSON)
		return resp.PartialSuccess().RejectedLogRecords(), resp.PartialSuccess().ErrorMessage(), err
	}
	resp := ptraceotlp.NewExportResponse()
	err = decode(r, resp.UnmarshalProto, resp.UnmarshalJSON)
	return resp.PartialSuccess().RejectedSpans(), resp.PartialSuccess().ErrorMessage(), err
}

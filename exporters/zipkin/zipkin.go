// Package zipkin implements the `zipkin` exporter. It sends spans to a next hop in Zipkin's v2
// format over HTTP, in JSON or protobuf.
package zipkin

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/tracing-backend/tracing/internal/translate/zipkin"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// The formats, named as in the OpenTelemetry Collector.
const (
	formatJSON  = "json"
	formatProto = "proto"
)

const spansPath = "/api/v2/spans"

type config struct {
	client.HTTPConfig
	client.NextHopConfig
	pipeline.Delivery
	Format             string `yaml:"format" doc:"Format of requests: json or proto."`
	DefaultServiceName string `yaml:"default_service_name" doc:"Service name of spans without a service. Zipkin receivers treat the default as no service."`
}

func defaults() config {
	return config{HTTPConfig: client.DefaultHTTPConfig(), NextHopConfig: client.DefaultNextHopConfig(), Delivery: pipeline.DefaultDelivery(),
		Format: formatJSON, DefaultServiceName: zipkin.NoServiceName}
}

// Validate reports a missing or incomplete URL, an unknown format and an empty name.
func (c *config) Validate() error {
	var errs []error
	if u, err := url.Parse(c.Endpoint); c.Endpoint == "" {
		errs = append(errs, pipeline.BadKey("endpoint", "must be set; write a URL, for example http://localhost:9411"+spansPath))
	} else if err == nil && strings.Trim(u.Path, "/") == "" {
		errs = append(errs, pipeline.BadKey("endpoint", "has no path; write the complete URL, for example http://localhost:9411"+spansPath))
	}
	if c.Format != formatJSON && c.Format != formatProto {
		errs = append(errs, pipeline.BadKey("format", "unknown format %q; use json or proto", c.Format))
	}
	if c.DefaultServiceName == "" {
		errs = append(errs, pipeline.BadKey("default_service_name", "must not be empty; the default is %s", zipkin.NoServiceName))
	}
	return errors.Join(errs...)
}

// Factory returns the factory of exporters of type zipkin.
func Factory() pipeline.Factory {
	return pipeline.Exporter("zipkin", defaults, newExporter).
		Doc("Sends spans to a next hop in Zipkin's v2 format, in JSON or protobuf. The endpoint is a complete URL with the path /api/v2/spans.")
}

type exporter struct {
	client       *client.HTTP
	set          pipeline.Settings
	nextHop      *client.NextHop
	url          string
	name         string // url without its query, which may contain a secret
	noService    string
	contentType  string
	encode       func(b *otlpdata.Batch, noService string) (body []byte, rejected int, err error)
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
	e := &exporter{client: h, set: set, nextHop: client.NewNextHop(set), url: c.Endpoint, noService: c.DefaultServiceName,
		contentType: "application/json", encode: zipkin.ToV2JSON, tenantHeader: c.TenantHeader}
	e.name, _, _ = strings.Cut(c.Endpoint, "?")
	if c.Format == formatProto {
		e.contentType, e.encode = "application/x-protobuf", zipkin.ToV2Proto
	}
	return e, nil
}

// Start reads certificates and tokens.
func (e *exporter) Start(ctx context.Context) error { return e.client.Start(ctx) }

// Stop closes idle connections.
func (e *exporter) Stop(ctx context.Context) error { return e.client.Stop(ctx) }

// Durability returns DurabilitySent: acknowledged spans are at the next hop.
func (e *exporter) Durability() pipeline.Durability { return pipeline.DurabilitySent }

var errNoIDs = pipeline.Permanent(errors.New("spans without a trace id or a span id cannot be sent in Zipkin's format"))

// Consume makes one attempt to send b. Spans that Zipkin's format cannot represent are rejected,
// and the others are sent.
func (e *exporter) Consume(ctx context.Context, b *otlpdata.Batch) error {
	body, rejected, err := e.encode(b, e.noService)
	switch {
	case err != nil:
		return pipeline.Permanent(err)
	case rejected > 0 && rejected == b.Len():
		return errNoIDs
	case b.Len() == 0:
		return nil
	}
	header := http.Header{"Content-Type": {e.contentType}}
	if tenant := b.Meta().Tenant; tenant != "" && e.tenantHeader != "" {
		header.Set(e.tenantHeader, tenant)
	}
	err = e.nextHop.Record(ctx, e.send(ctx, header, body))
	if err == nil && rejected > 0 {
		return &pipeline.Partial{Rejected: rejected, Err: errNoIDs}
	}
	return err
}

func (e *exporter) send(ctx context.Context, header http.Header, body []byte) error {
	response, err := e.client.Post(ctx, e.url, header, [][]byte{body})
	if err == nil && response.Status/100 != 2 {
		err = e.responseError(response)
	}
	if err != nil {
		return fmt.Errorf("sending to %s: %w", e.name, err)
	}
	if mediaType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); mediaType == "text/html" {
		// Probably a web server or a login page, which has not stored the spans.
		return fmt.Errorf("sending to %s: response is a web page, not a Zipkin response; check endpoint", e.name)
	}
	return nil
}

// maxMessage is the maximum length of a response that is quoted in an error, in bytes.
const maxMessage = 1 << 10

// responseError returns the error for an unsuccessful response. Zipkin does not define which
// requests may be retried, so 5xx, 408 and 429 are retryable, and other 4xx are permanent.
func (e *exporter) responseError(r client.Response) error {
	err := errors.New(strings.TrimSpace(fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status))))
	if mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); mediaType == "text/plain" && len(r.Body) > 0 {
		text := strings.ToValidUTF8(strings.TrimSpace(string(r.Body[:min(len(r.Body), maxMessage)])), "\uFFFD")
		err = fmt.Errorf("%w: %s", err, text)
	}
	after, requested := client.RetryAfter(r.Header, e.set.Env.Now())
	switch {
	case r.Status == http.StatusTooManyRequests, r.Status == http.StatusServiceUnavailable && requested:
		return pipeline.Overloaded(err, after)
	case r.Status/100 == 5, r.Status == http.StatusRequestTimeout:
		return err
	}
	return pipeline.Permanent(err)
}

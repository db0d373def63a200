// Package webhook sends spans to a web server and receives them: an exporter and a receiver of the
// same protocol. A request is a POST of encoded OTLP. The response is JSON:
//
//	{"rejected": 2, "error": "span has no name"}
//
// With status 200, all spans but the rejected ones are accepted. With any other status none is, and
// the status says whether to send the request again.
package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// answer is the response to a request.
type answer struct {
	Rejected int64  `json:"rejected"`
	Error    string `json:"error,omitempty"`
}

type exporterConfig struct {
	client.HTTPConfig
	client.NextHopConfig
	pipeline.Delivery
}

func exporterDefaults() exporterConfig {
	return exporterConfig{client.DefaultHTTPConfig(), client.DefaultNextHopConfig(), pipeline.DefaultDelivery()}
}

// Validate reports a missing endpoint. The embedded keys are checked separately.
func (c *exporterConfig) Validate() error {
	if c.Endpoint == "" {
		return pipeline.BadKey("endpoint", "must be set; write a URL, for example http://localhost:4321")
	}
	return nil
}

// ExporterFactory returns the factory of exporters of type webhook.
func ExporterFactory() pipeline.Factory {
	return pipeline.Exporter("webhook", exporterDefaults, newExporter).Doc("Sends spans to a web server.")
}

// exporter has Start and Stop from the client that it embeds.
type exporter struct {
	*client.HTTP
	config  exporterConfig
	nextHop *client.NextHop
}

var (
	_ pipeline.Starter = (*exporter)(nil)
	_ pipeline.Stopper = (*exporter)(nil)
)

func newExporter(set pipeline.Settings, c exporterConfig) (*exporter, error) {
	h, err := client.NewHTTP(set, c.HTTPConfig)
	return &exporter{HTTP: h, config: c, nextHop: client.NewNextHop(set)}, err
}

// Consume makes one attempt to send all spans of a batch. The framework retries and queues, because
// the configuration embeds pipeline.Delivery.
func (e *exporter) Consume(ctx context.Context, b *otlpdata.Batch) error {
	body, err := b.Encoded() // all chunks in one request
	if err != nil {
		return pipeline.Permanent(err)
	}
	header := http.Header{"Content-Type": {"application/x-protobuf"}}
	if tenant := b.Meta().Tenant; tenant != "" && e.config.TenantHeader != "" {
		header.Set(e.config.TenantHeader, tenant)
	}
	response, err := e.Post(ctx, e.config.Endpoint, header, [][]byte{body})
	if err == nil {
		err = e.outcome(response)
	}
	return e.nextHop.Record(ctx, err) // reports the component as degraded after several failures
}

// outcome returns the error for a response. Its class decides what happens next.
func (e *exporter) outcome(r client.Response) error {
	var a answer
	if err := json.Unmarshal(r.Body, &a); err != nil {
		a.Error = fmt.Sprintf("invalid response: %v", err)
	}
	err := fmt.Errorf("%s: %d %s", e.config.Endpoint, r.Status, a.Error)
	switch {
	case r.Status == http.StatusOK:
		return e.nextHop.Partial(a.Rejected, a.Error) // nil if no span was rejected
	case r.Status == http.StatusTooManyRequests, r.Status == http.StatusServiceUnavailable:
		seconds, _ := strconv.Atoi(r.Header.Get("Retry-After"))
		return pipeline.Overloaded(err, time.Duration(seconds)*time.Second)
	case r.Status >= http.StatusInternalServerError:
		return err // temporary
	}
	return pipeline.Permanent(err)
}

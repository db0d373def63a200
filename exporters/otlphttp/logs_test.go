package otlphttp

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

// startLogs starts an exporter of log records.
func startLogs(t *testing.T, change func(*config)) (*exporter, error) {
	t.Helper()
	c := defaults()
	c.Compression = "none"
	change(&c)
	f := pipelinetest.NewFixture("otlphttp", 0)
	f.Settings.Signal = otlpdata.SignalLogs
	e, err := newExporter(f.Settings, c)
	if err == nil {
		pipelinetest.Start(t, e)
	}
	return e, err
}

// Log records are sent to the URL for logs in either encoding, and the next hop can reject some.
func TestLogs(t *testing.T) {
	hop := startHop(t)
	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("text")
	b, err := otlpdata.FromLogs(ld, otlpdata.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := startLogs(t, func(c *config) { c.Endpoint = hop.url + "/" })
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Consume(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if want, err := b.Encoded(); err != nil || !bytes.Equal(hop.body, want) || hop.req.URL.Path != "/v1/logs" {
		t.Errorf("%q arrived at %s, %v", hop.body, hop.req.URL.Path, err)
	}
	e, err = startLogs(t, func(c *config) { c.LogsEndpoint, c.Encoding = hop.url+"/in", encodingJSON })
	if err != nil {
		t.Fatal(err)
	}
	hop.respondWith(200, []byte(`{"partialSuccess":{"rejectedLogRecords":"1","errorMessage":"too old"}}`), "Content-Type", typeJSON)
	var partial *pipeline.Partial
	if err := e.Consume(t.Context(), b); !errors.As(err, &partial) || partial.Rejected != 1 || !strings.Contains(err.Error(), "too old") {
		t.Errorf("%v", err)
	}
	req := plogotlp.NewExportRequest()
	if err := req.UnmarshalJSON(hop.body); err != nil || req.Logs().LogRecordCount() != 1 || hop.req.URL.Path != "/in" {
		t.Errorf("%s arrived at %s, %v", hop.body, hop.req.URL.Path, err)
	}
}

// An exporter of a pipeline of logs needs a URL for them.
func TestLogsWithoutURL(t *testing.T) {
	_, err := startLogs(t, func(c *config) { c.TracesEndpoint = "http://localhost:1/v1/traces" })
	if err == nil || !strings.Contains(err.Error(), "logs_endpoint") {
		t.Errorf("%v", err)
	}
}

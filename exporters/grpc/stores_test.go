package grpc

import (
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestEndpoints checks the combinations of endpoint and endpoints.
func TestEndpoints(t *testing.T) {
	for _, c := range []struct {
		change func(*config)
		want   string // part of the error; "" is none
	}{
		{func(c *config) { c.Endpoint = "a:1,b:1" }, ""},
		{func(c *config) { c.Endpoints = []string{"a:1", "b:1", "dns:///c:1"} }, ""},
		{func(*config) {}, "must be set"},
		{func(c *config) { c.Endpoint, c.Endpoints = "a:1", []string{"b:1"} }, "cannot be combined with endpoint"},
		{func(c *config) { c.Endpoints = []string{"a:1", "b:1", "a:1"} }, `duplicate address "a:1"`},
		{func(c *config) { c.Endpoints = []string{"a:1,b:1"} }, "several addresses"},
		{func(c *config) { c.Endpoints = []string{"a"} }, "not a valid address"},
		{func(c *config) { c.Endpoints, c.Archive = []string{"a:1"}, true }, "another exporter for the archive"},
		{func(c *config) {
			c.Endpoints = []string{"a:1"}
			c.Writer = pipeline.Present(client.DefaultGRPCConfig())
		}, "only read"},
	} {
		config := defaults()
		c.change(&config)
		err := config.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q and %q: error %v, want %q", config.Endpoint, config.Endpoints, err, c.want)
		}
	}
	several := config{Endpoints: []string{"a:1"}}
	type archive interface {
		pipeline.Consumer
		tracestore.Reader
	}
	if several.Lacks(reflect.TypeFor[archive]()) == nil || several.Lacks(reflect.TypeFor[tracestore.Reader]()) != nil {
		t.Error("several stores can be used as an archive, or cannot be read")
	}
}

// TestWritesToSeveralServers checks that spans are refused permanently.
func TestWritesToSeveralServers(t *testing.T) {
	c := defaults()
	c.Endpoints = []string{"localhost:1", "localhost:2"}
	e, err := newComponent(pipeline.Settings{Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(), Env: pipeline.SystemEnv(),
		Report: func(error) {}}, c)
	if err != nil {
		t.Fatal(err)
	}
	err = e.Consume(t.Context(), new(otlpdata.Batch))
	if err == nil || !pipeline.IsPermanent(err) || !strings.Contains(err.Error(), "load_balancing") {
		t.Errorf("Consume: %v", err)
	}
}

// TestServerReports checks that all unreachable servers are named, and that the process is not
// ready only while all of them are unreachable.
func TestServerReports(t *testing.T) {
	var last error
	r := newServerReports(func(err error) { last = err }, 2)
	down := func(name string) error { return pipeline.NotReady(errTest(name + " is unreachable")) }
	for _, step := range []struct {
		server int
		err    error
		want   string
		ready  bool
	}{
		{0, down("a"), "a is unreachable", true},
		{1, down("b"), "a is unreachable; b is unreachable", false},
		{0, nil, "b is unreachable", true},
		{0, errTest("a has an old certificate"), "a has an old certificate; b is unreachable", true},
		{1, nil, "a has an old certificate", true},
		{0, nil, "", true},
	} {
		r.report(step.server, step.err)
		text := ""
		if last != nil {
			text = last.Error()
		}
		if text != step.want || pipeline.IsNotReady(last) == step.ready {
			t.Errorf("server %d reports %v: %q, want %q; ready %t", step.server, step.err, text, step.want, step.ready)
		}
	}
}

type errTest string

func (e errTest) Error() string { return string(e) }

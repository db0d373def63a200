package routing_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/connectors/routing"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	none   struct{}
	source struct{}
	sink   struct {
		id      string
		program *program
	}
	// program is a running configuration with a receiver and one sink for each of the pipelines a,
	// b and c.
	program struct {
		*app.App
		next pipeline.Consumer

		mu     sync.Mutex
		got    map[string][]string // names of spans by sink
		refuse map[string]error
	}
)

func (*source) Start(context.Context) error { return nil }

func (s *sink) Consume(_ context.Context, b *otlpdata.Batch) error {
	s.program.mu.Lock()
	defer s.program.mu.Unlock()
	if err := s.program.refuse[s.id]; err != nil {
		return err
	}
	td, err := b.Traces()
	if err != nil {
		return err
	}
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				s.program.got[s.id] = append(s.program.got[s.id], span.Name())
			}
		}
	}
	return nil
}

func load(p *program, table string) (*app.Config, error) {
	defaults := func() none { return none{} }
	text := "receivers: {source: }\nexporters: {sink/a: , sink/b: , sink/c: }\nconnectors:\n  routing:\n" + table + `
service:
  pipelines:
    traces: {receivers: [source], exporters: [routing]}
    traces/a: {receivers: [routing], exporters: [sink/a]}
    traces/b: {receivers: [routing], exporters: [sink/b]}
    traces/c: {receivers: [routing], exporters: [sink/c]}
`
	return app.Load(app.LoadOptions{Files: []string{"c.yaml"}, Factories: []pipeline.Factory{routing.Factory(),
		pipeline.Receiver("source", defaults, func(_ pipeline.Settings, _ none, next pipeline.Consumer) (*source, error) {
			p.next = next
			return &source{}, nil
		}),
		pipeline.Exporter("sink", defaults, func(s pipeline.Settings, _ none) (*sink, error) { return &sink{s.ID.Name, p}, nil }),
	}, ReadFile: func(name string) ([]byte, error) {
		if name == "c.yaml" {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}})
}

func start(t *testing.T, table string) *program {
	t.Helper()
	p := &program{got: map[string][]string{}, refuse: map[string]error{}}
	config, err := load(p, table)
	if err != nil {
		t.Fatal(err)
	}
	if p.App, err = app.New(config, app.Options{Log: &strings.Builder{}}); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return p
}

// batch returns the resources prod (spans 1 and 2), dev (3) and one without an environment (4).
func batch(headers map[string][]string) *otlpdata.Batch {
	td := ptrace.NewTraces()
	for i, env := range []string{"prod", "dev", ""} {
		rs := td.ResourceSpans().AppendEmpty()
		if env != "" {
			rs.Resource().Attributes().PutStr("env", env)
		}
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		for j := range []int{2, 1, 1}[i] {
			s := spans.AppendEmpty()
			s.SetTraceID([16]byte{byte(i + 1)})
			s.SetSpanID([8]byte{byte(j + 1)})
			s.SetName(fmt.Sprint(i + j + min(i, 1) + 1))
			s.Attributes().PutInt("http.response.status_code", int64(200+300*j))
		}
	}
	return otlpdata.FromTraces(td, otlpdata.Meta{Metadata: otlpdata.NewMetadata(headers)})
}

// Spans reach the pipelines that the Collector passes them to.
func TestRoutes(t *testing.T) {
	const prod, dev = `attributes["env"] == "prod"`, `attributes["env"] == "dev"`
	for name, c := range map[string]struct{ table, want string }{
		"resource":              {row(prod, "a") + row(dev, "b") + "    default_pipelines: [traces/c]\n", "a:1,2 b:3 c:4"},
		"no default":            {row(prod, "a"), "a:1,2"},
		"first row wins":        {row(`attributes["env"] != nil`, "a") + row(dev, "b"), "a:1,2,3"},
		"copy":                  {row(prod, "a", "action: copy") + row(`true`, "b"), "a:1,2 b:1,2,3,4"},
		"several pipelines":     {row(prod, "a, traces/b") + row(`true`, "b"), "a:1,2 b:1,2,3,4"},
		"span":                  {row(`attributes["http.response.status_code"] == 500`, "a", "context: span") + row(prod, "b"), "a:2 b:1"},
		"span by its prefix":    {row(`span.name == "3" or IsMatch(span.name, "^4")`, "a") + "    default_pipelines: [traces/b]\n", "a:3,4 b:1,2"},
		"resource by prefix":    {row(`not (resource.attributes["env"] == "dev")`, "c"), "c:1,2,4"},
		"span of a resource":    {row(`resource.attributes["env"] == "prod" and name == "1"`, "a", "context: span"), "a:1"},
		"request":               {row(`request["X-Tenant"] == "acme"`, "a", "context: request") + row(dev, "b"), "a:1,2,3,4"},
		"request differs":       {row(`request["x-tenant"] != "acme"`, "a", "context: request") + row(dev, "b"), "b:3"},
		"request has no header": {row(`request["other"] != "acme"`, "a", "context: request") + row(dev, "b"), "b:3"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, "    table:\n"+c.table)
			if err := p.next.Consume(t.Context(), batch(map[string][]string{"X-Tenant": {"acme"}})); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, id := range slices.Sorted(maps.Keys(p.got)) {
				got = append(got, id+":"+strings.Join(p.got[id], ","))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
		})
	}
}

// row returns a row of the table. more are other keys.
func row(condition, pipelines string, more ...string) string {
	keys := append([]string{"condition: '" + condition + "'", "pipelines: [traces/" + pipelines + "]"}, more...)
	return "      - {" + strings.Join(keys, ", ") + "}\n"
}

// If some pipelines refuse their part of a request for good, the response is a partial success.
// After a temporary error, the client sends all again.
func TestOutcomes(t *testing.T) {
	p := start(t, "    table:\n"+row(`attributes["env"] == "prod"`, "a")+"    default_pipelines: [traces/b]\n")
	p.refuse["a"] = pipeline.Permanent(errors.New("no"))
	var partial *pipeline.Partial
	if err := p.next.Consume(t.Context(), batch(nil)); !errors.As(err, &partial) || partial.Rejected != 2 {
		t.Errorf("half refused for good: %v", err)
	}
	p.refuse["b"] = errors.New("down")
	if err := p.next.Consume(t.Context(), batch(nil)); errors.As(err, &partial) && pipeline.IsPermanent(err) || err == nil {
		t.Errorf("half refused for now: %v", err)
	}
	p.refuse["b"] = pipeline.Permanent(errors.New("no"))
	if err := p.next.Consume(t.Context(), batch(nil)); !pipeline.IsPermanent(err) {
		t.Errorf("all refused: %v", err)
	}
	p = start(t, "    table:\n"+row(`attributes["env"] == "prod"`, "a, traces/b")+"    default_pipelines: [traces/c]\n")
	p.refuse["a"] = pipeline.Permanent(errors.New("no"))
	p.refuse["b"] = p.refuse["a"]
	if err := p.next.Consume(t.Context(), batch(nil)); !errors.As(err, &partial) || partial.Rejected != 2 || len(p.got["c"]) != 2 {
		t.Errorf("half refused by two pipelines: %v, %v", err, p.got)
	}
}

// A condition that cannot be evaluated refuses the request or, if the configuration says so, is not
// met.
func TestErrorMode(t *testing.T) {
	table := "    table:\n" + row(`ParseJSON(attributes["env"]) != nil`, "a") + "    default_pipelines: [traces/b]\n"
	if err := start(t, table).next.Consume(t.Context(), batch(nil)); !pipeline.IsPermanent(err) {
		t.Errorf("propagate: %v", err)
	}
	for _, mode := range []string{"ignore", "silent"} {
		p := start(t, table+"    error_mode: "+mode+"\n")
		if err := p.next.Consume(t.Context(), batch(nil)); err != nil || len(p.got["b"]) != 4 {
			t.Errorf("%s: %v, %v", mode, err, p.got)
		}
	}
}

// What cannot be done exactly is refused, with its position.
func TestConfiguration(t *testing.T) {
	const at, table = "connectors.routing.", "    table:\n"
	for text, want := range map[string]string{
		"    table: []\n":                                          at + "table: needs at least one row",
		table + row("true", "d"):                                   at + `table.0.pipelines.0: no pipeline is called "traces/d"`,
		table + row("true", "a", "context: log"):                   at + `table.0.context: "log" is not a context of spans`,
		table + row("true", "a", "action: clone"):                  at + `table.0.action: "clone" is not an action`,
		table + row("true", "a", "statement: route()"):             at + "table.0: needs either a condition or a statement",
		table + row("attributes[", "a"):                            at + "table.0.condition: ",
		table + row("Nonsense()", "a"):                             at + "table.0.condition: ",
		table + row(`request["a"] > "b"`, "a", "context: request"): at + "table.0.condition: must be request",
		table + row(`otelcol.client.metadata["a"] == "b"`, "a"):    at + "table.0.condition: otelcol is not available here",
		"    match_once: false\n" + table + row("true", "a"):       `connectors.routing: unknown key "match_once"`,
		"    error_mode: x\n" + table + row("true", "a"):           at + `error_mode: "x" is not a mode`,
		table + "      - {statement: 'delete_key(attributes, \"a\") where true', pipelines: [traces/a]}\n": at +
			"table.0.statement: delete_key is not available",
	} {
		_, err := load(&program{}, text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "c.yaml:") {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

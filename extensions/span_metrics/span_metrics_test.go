package spanmetrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is a fake of a store that counts spans of one trace.
type store struct {
	tracestore.Reader
	spans      []span
	err        error
	edgesErr   error
	operations int // each service has this number of operations, with one more span each
	incomplete bool
	hidden     int // number of first spans that are in a store which does not respond
	asked      []tracestore.MetricsQuery
}

type span struct {
	service, name, kind string
	start               time.Time
	duration            time.Duration
	failed              bool
}

func (s *store) Metrics(_ context.Context, _ string, q tracestore.MetricsQuery) (a tracestore.MetricsAnswer, _ error) {
	s.asked = append(s.asked, q)
	if s.incomplete {
		a.Reasons = tracestore.Because(tracestore.ReasonOther, "a part cannot be read")
	}
	if s.hidden > 0 {
		a.Reasons = tracestore.Because(tracestore.ReasonUnavailable, "a store does not respond")
	}
	for i := s.hidden; i < len(s.spans); i++ {
		sp := &s.spans[i]
		if sp.start.Before(q.From) || sp.start.After(q.To) || !slices.Contains(q.Kinds, sp.kind) {
			continue
		}
		p := tracestore.MetricPoint{Start: uint64(sp.start.UnixNano()) / q.StepLength() * q.StepLength(), Calls: 1}
		if sp.failed {
			p.Errors = 1
		}
		p.Durations.Observe(uint64(sp.duration))
		a.Series = append(a.Series, tracestore.MetricSeries{Service: sp.service, Operation: sp.name, Points: []tracestore.MetricPoint{p}})
	}
	if s.operations > 0 && slices.Contains(q.Kinds, "server") {
		a.Series = append(a.Series, s.crowd(q)...)
	}
	return a, s.err
}

// crowd returns the operations of a service with more operations than a store returns, which it
// selects at random.
func (s *store) crowd(q tracestore.MetricsQuery) (all []tracestore.MetricSeries) {
	point := tracestore.MetricPoint{Start: uint64(q.From.UnixNano()), Calls: 1}
	point.Durations.Observe(1)
	rest := tracestore.MetricSeries{Service: "crowd", Operation: tracestore.OtherOperation,
		Points: []tracestore.MetricPoint{{Start: point.Start}}}
	for i, n := range rand.Perm(s.operations) {
		if i < tracestore.MaxOperations {
			all = append(all, tracestore.MetricSeries{Service: "crowd", Operation: fmt.Sprint(n), Points: []tracestore.MetricPoint{point}})
			continue
		}
		rest.Points[0].Calls++
		rest.Points[0].Durations.Add(&point.Durations)
	}
	if rest.Points[0].Calls > 0 {
		all = append(all, rest)
	}
	return all
}

func (s *store) Baselines(context.Context, string, tracestore.BaselineQuery) (tracestore.BaselineAnswer, error) {
	return tracestore.BaselineAnswer{}, errors.New("not asked for")
}

func (s *store) Dependencies(context.Context, string, time.Time, time.Time) (tracestore.Graph, error) {
	return tracestore.Graph{}, errors.New("not asked for")
}

func (s *store) Peers(context.Context, string, time.Time, time.Time) (tracestore.Graph, error) {
	return tracestore.Graph{}, errors.New("not asked for")
}

// Edges counts each server span as a call from web, and each client span as one to a database.
func (s *store) Edges(_ context.Context, _ string, q tracestore.EdgeQuery) (g tracestore.EdgeGraph, _ error) {
	for i := range s.spans {
		sp := &s.spans[i]
		if sp.start.Before(q.From) || sp.start.After(q.To) {
			continue
		}
		e := tracestore.CallEdge{Parent: "web", Child: sp.service, Connection: tracestore.ConnectionGRPC, Calls: 1}
		if sp.kind == "client" {
			e = tracestore.CallEdge{Parent: sp.service, Child: "postgresql", Connection: tracestore.ConnectionDatabase, Peer: true, Calls: 1}
		}
		if sp.failed {
			e.Errors = 1
		}
		e.Durations.Observe(uint64(sp.duration))
		g.Edges = append(g.Edges, e)
	}
	return g, s.edgesErr
}

func (s *store) Aggregate(_ context.Context, q tracestore.Query, a tracestore.Aggregation) (out tracestore.Aggregate, _ error) {
	for i := range s.spans {
		sp := &s.spans[i]
		is := q.Where.(tracestore.Cond).Value.Text == sp.kind
		if len(out.Exemplars) < a.Exemplars && is && !sp.start.Before(q.From) {
			out.Exemplars = append(out.Exemplars, tracestore.Exemplar{TraceID: otlpdata.TraceID{1}, SpanID: otlpdata.SpanID{byte(i + 1)},
				Start: uint64(sp.start.UnixNano()), Duration: uint64(sp.duration), Service: sp.service, Name: sp.name})
		}
	}
	return out, nil
}

// program is an extension with a fake store and a fake clock. It is not started.
type program struct {
	*extension
	t       *testing.T
	store   *store
	now     time.Time
	fixture *pipelinetest.Fixture
}

func newProgram(t *testing.T, change func(*config)) *program {
	t.Helper()
	p := &program{t: t, store: &store{}, now: time.Unix(1_800_000_000, 0), fixture: pipelinetest.NewFixture("span_metrics", 1<<20)}
	p.fixture.Settings.Env.Now = func() time.Time { return p.now }
	c := defaults()
	c.Endpoint = "localhost:0"
	c.Storage = pipeline.BoundRef[tracestore.Reader](p.store)
	c.Buckets = []pipeline.Duration{pipeline.Duration(10 * time.Millisecond), pipeline.Duration(time.Second)}
	c.Exemplars = 0
	if change != nil {
		change(&c)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.extension, err = newExtension(p.fixture.Settings, c); err != nil {
		t.Fatal(err)
	}
	return p
}

// stores adds n spans that started some time ago.
func (p *program) stores(n int, s span, ago time.Duration) {
	s.start = p.now.Add(-ago)
	for range n {
		p.store.spans = append(p.store.spans, s)
	}
}

// step lets an interval pass and updates the series.
func (p *program) step() {
	p.t.Helper()
	p.now = p.now.Add(p.cfg.Interval.Std())
	if err := p.update(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

// orderLabels are the labels of [order]; scrape writes ORDER instead.
const orderLabels = `service_name="shop",span_kind="SPAN_KIND_SERVER",span_name="POST /order"`

// scrape returns the lines that contain a text, without comments.
func (p *program) scrape(with string) string {
	p.t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text")
	w := httptest.NewRecorder()
	p.http.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		p.t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") && strings.Contains(line, with) {
			lines = append(lines, strings.ReplaceAll(line, orderLabels, "ORDER"))
		}
	}
	return strings.Join(lines, "\n")
}

// expect compares lines of a scrape.
func (p *program) expect(with, want string) {
	p.t.Helper()
	if got := p.scrape(with); got != strings.TrimSpace(want) {
		p.t.Errorf("%s: got\n%s\nwant\n%s", with, got, strings.TrimSpace(want))
	}
}

var order = span{service: "shop", name: "POST /order", kind: "server", duration: 5 * time.Millisecond}

func TestCountersBeginWithTheExtension(t *testing.T) {
	p := newProgram(t, nil)
	p.stores(7, order, time.Minute)
	p.step()
	p.expect("calls", `
traces_span_metrics_calls_total{ORDER,status_code="STATUS_CODE_ERROR"} 0.0
traces_span_metrics_calls_total{ORDER,status_code="STATUS_CODE_UNSET"} 0.0`)
	failed := order
	failed.failed, failed.duration = true, 2*time.Second
	p.stores(2, order, 0)
	p.stores(1, failed, 9*time.Minute) // arrives late
	p.step()
	p.step() // counts nothing twice
	p.expect("traces_span", `
traces_span_metrics_calls_total{ORDER,status_code="STATUS_CODE_ERROR"} 1.0
traces_span_metrics_calls_total{ORDER,status_code="STATUS_CODE_UNSET"} 2.0
traces_span_metrics_duration_milliseconds_bucket{ORDER,le="10.0"} 2
traces_span_metrics_duration_milliseconds_bucket{ORDER,le="1000.0"} 2
traces_span_metrics_duration_milliseconds_bucket{ORDER,le="+Inf"} 3
traces_span_metrics_duration_milliseconds_sum{ORDER} 2010.0
traces_span_metrics_duration_milliseconds_count{ORDER} 3`)
}

// TestStoreThatRespondsLate checks that the spans of a store which did not respond at the start are
// not counted when it does.
func TestStoreThatRespondsLate(t *testing.T) {
	p := newProgram(t, func(c *config) { c.ServiceGraph = false })
	p.stores(7, order, time.Minute)
	p.store.hidden = 5
	p.step()
	p.step()
	p.store.hidden = 0
	p.step()
	p.stores(2, order, 0)
	p.step()
	p.expect("UNSET", `traces_span_metrics_calls_total{ORDER,status_code="STATUS_CODE_UNSET"} 2.0`)
}

// TestNewSeriesBeginWith0 checks that a new series is first seen with the value 0, because
// Prometheus does not count the growth to the first value of a series.
func TestNewSeriesBeginWith0(t *testing.T) {
	p := newProgram(t, nil)
	p.step()
	p.stores(4, order, 0)
	p.step()
	p.expect("UNSET", `traces_span_metrics_calls_total{ORDER,status_code="STATUS_CODE_UNSET"} 0.0`)
	p.step()
	p.expect("UNSET", `traces_span_metrics_calls_total{ORDER,status_code="STATUS_CODE_UNSET"} 4.0`)
}

func TestServiceGraph(t *testing.T) {
	p := newProgram(t, nil)
	p.step()
	p.stores(3, order, 0)
	query := order
	query.kind, query.failed = "client", true
	p.stores(2, query, 0)
	for range 9 { // calls are counted after a delay, and not at every interval
		p.step()
	}
	p.expect("service_graph_request", `
traces_service_graph_request_failed_total{client="shop",connection_type="database",server="postgresql"} 2.0
traces_service_graph_request_failed_total{client="web",connection_type="",server="shop"} 0.0
traces_service_graph_request_server_seconds_bucket{client="shop",connection_type="database",server="postgresql",le="0.01"} 2
traces_service_graph_request_server_seconds_bucket{client="shop",connection_type="database",server="postgresql",le="1.0"} 2
traces_service_graph_request_server_seconds_bucket{client="shop",connection_type="database",server="postgresql",le="+Inf"} 2
traces_service_graph_request_server_seconds_sum{client="shop",connection_type="database",server="postgresql"} 0.01
traces_service_graph_request_server_seconds_count{client="shop",connection_type="database",server="postgresql"} 2
traces_service_graph_request_server_seconds_bucket{client="web",connection_type="",server="shop",le="0.01"} 3
traces_service_graph_request_server_seconds_bucket{client="web",connection_type="",server="shop",le="1.0"} 3
traces_service_graph_request_server_seconds_bucket{client="web",connection_type="",server="shop",le="+Inf"} 3
traces_service_graph_request_server_seconds_sum{client="web",connection_type="",server="shop"} 0.015
traces_service_graph_request_server_seconds_count{client="web",connection_type="",server="shop"} 3
traces_service_graph_request_total{client="shop",connection_type="database",server="postgresql"} 2.0
traces_service_graph_request_total{client="web",connection_type="",server="shop"} 3.0`)
	off := newProgram(t, func(c *config) { c.ServiceGraph = false })
	off.stores(3, order, time.Minute)
	off.step()
	off.expect("service_graph", "")
}

// TestCountersOfAnyHistory compares the counters with the number of stored spans after spans of any
// age, failures of the store, removed spans and long pauses.
func TestCountersOfAnyHistory(t *testing.T) {
	p := newProgram(t, nil)
	p.stores(1, order, 0)
	p.step()
	want := 0
	for i := range 200 {
		p.stores(3, order, time.Duration(i%600)*time.Second)
		want += 3
		p.step()
		switch i % 20 {
		case 3: // retention
			p.store.spans = slices.DeleteFunc(p.store.spans, func(s span) bool { return p.now.Sub(s.start) > 30*time.Minute })
		case 7:
			p.store.err = errors.New("store is down")
			for range 150 { // longer than max_span_delay
				p.now = p.now.Add(p.cfg.Interval.Std())
				if err := p.update(t.Context()); err == nil {
					t.Fatal("no error although the store is down")
				}
				if p.now.Second() == 0 {
					p.stores(1, order, time.Minute)
					want++
				}
			}
			p.store.err = nil
			p.step()
		}
	}
	if got := p.spans.series[spanKey{"shop", "POST /order", "SPAN_KIND_SERVER"}].total.succeeded; got != uint64(want) {
		t.Errorf("%d spans counted, want %d", got, want)
	}
	if n := len(p.spans.series[spanKey{"shop", "POST /order", "SPAN_KIND_SERVER"}].periods); n > 3 {
		t.Errorf("%d periods are kept", n)
	}
}

// TestCrowdedService checks that no span is counted twice if a service has more operations than a
// store returns, whichever it returns.
func TestCrowdedService(t *testing.T) {
	p := newProgram(t, func(c *config) { c.ServiceGraph, c.MaxDelay = false, pipeline.Duration(time.Hour) })
	p.step()
	p.store.operations = tracestore.MaxOperations - 1
	p.step()
	p.step()
	for p.store.operations < 3*tracestore.MaxOperations {
		p.store.operations += 500
		p.step()
	}
	var counted uint64
	for _, s := range p.spans.series {
		counted += s.total.succeeded
	}
	if most := uint64(p.store.operations); counted > most || counted < most-500 {
		t.Errorf("%d of %d spans counted, want all but the ones of one interval", counted, most)
	}
}

func TestClockSetBack(t *testing.T) {
	p := newProgram(t, nil)
	p.now = p.now.Truncate(10 * time.Minute)
	p.step()
	total := func() (spans, calls uint64) {
		for _, s := range p.spans.series {
			spans += s.total.succeeded
		}
		for _, s := range p.calls.series {
			calls += s.total.succeeded
		}
		return spans, calls
	}
	for range 40 {
		p.stores(5, order, 0)
		p.step()
	}
	spans, calls := total()
	for _, back := range []time.Duration{time.Minute, 3 * time.Minute, time.Hour} {
		p.now = p.now.Add(-back)
		p.step()
		p.now = p.now.Add(back)
	}
	for range 12 {
		p.step()
	}
	if s, c := total(); s != spans || s != 200 || c < calls || c != 200 {
		t.Errorf("%d spans and %d calls counted, before %d and %d, want 200 and 200", s, c, spans, calls)
	}
}

// TestSpansWithoutCalls checks that spans are counted while calls between services cannot be, and
// that calls are counted after a short failure, but not all of them after a long one.
func TestSpansWithoutCalls(t *testing.T) {
	p := newProgram(t, nil)
	p.stores(1, order, 0)
	p.step()
	p.store.edgesErr = errors.New("too slow")
	fail := func(n int) {
		for range n {
			p.now = p.now.Add(p.cfg.Interval.Std())
			p.stores(1, order, 0)
			if err := p.update(t.Context()); err != nil && !strings.Contains(err.Error(), "counting calls between services: too slow") {
				t.Error(err)
			}
		}
	}
	recover := func() (calls uint64) {
		p.store.edgesErr = nil
		for range 12 {
			p.step()
		}
		for _, s := range p.calls.series {
			calls += s.total.succeeded
		}
		return calls
	}
	fail(20)
	p.expect("calls_total", `
traces_span_metrics_calls_total{ORDER,status_code="STATUS_CODE_ERROR"} 0.0
traces_span_metrics_calls_total{ORDER,status_code="STATUS_CODE_UNSET"} 20.0`)
	if got := recover(); got != 21 {
		t.Errorf("%d calls counted, want 21", got)
	}
	p.store.edgesErr = errors.New("too slow")
	fail(200)
	if got := recover(); got >= 21+60 || got <= 21+30 {
		t.Errorf("%d calls counted, want those of about 10 minutes", got)
	}
}

func TestLimitOfSeries(t *testing.T) {
	p := newProgram(t, func(c *config) { c.MaxSeries, c.ServiceGraph = 2, false })
	p.step()
	for _, name := range []string{"a", "b", "c", "d"} {
		s := order
		s.name = name
		p.stores(1, s, 0)
	}
	p.step()
	p.step()
	p.expect("UNSET", `
traces_span_metrics_calls_total{service_name="other",span_kind="SPAN_KIND_SERVER",span_name="other",status_code="STATUS_CODE_UNSET"} 2.0
traces_span_metrics_calls_total{service_name="shop",span_kind="SPAN_KIND_SERVER",span_name="a",status_code="STATUS_CODE_UNSET"} 1.0
traces_span_metrics_calls_total{service_name="shop",span_kind="SPAN_KIND_SERVER",span_name="b",status_code="STATUS_CODE_UNSET"} 1.0`)
	p.now = p.now.Add(p.cfg.MaxIdle.Std())
	p.step()
	p.expect("UNSET", "")
}

func TestNamesOfAnyBytes(t *testing.T) {
	p := newProgram(t, func(c *config) { c.ServiceGraph = false })
	p.stores(1, span{service: "a\xff\"\n", name: "\xfe", kind: ""}, 0)
	p.step()
	p.expect("UNSET", `traces_span_metrics_calls_total{service_name="a�\"\n",span_kind="SPAN_KIND_UNSPECIFIED",span_name="�",status_code="STATUS_CODE_UNSET"} 0.0`)
}

func TestExemplars(t *testing.T) {
	p := newProgram(t, func(c *config) { c.Exemplars, c.ServiceGraph = 10, false })
	p.stores(1, order, 0)
	p.step()
	p.stores(1, order, 0)
	p.step()
	got := p.scrape("# {")
	for _, part := range []string{`le="10.0"} 1 # {`, `trace_id="01000000000000000000000000000000"`, `span_id="0200000000000000"`, "} 5.0 1.800000015e+09"} {
		if !strings.Contains(got, part) || strings.Contains(got, "\n") {
			t.Errorf("%s is not in %s", part, got)
		}
	}
}

func TestProblemsAreCounted(t *testing.T) {
	p := newProgram(t, nil)
	p.store.err = errors.New("store is down")
	if err := p.update(t.Context()); err == nil || err.Error() != "counting spans: store is down" {
		t.Errorf("got %v", err)
	}
	p.store.err, p.store.incomplete = nil, true
	p.step()
	p.store.incomplete = false
	p.step()
	got := p.fixture.Samples(t, "tracing_span_metrics_collections_total", "result")
	if got["failed"] != 1 || got["incomplete"] != 1 || got["complete"] != 1 {
		t.Errorf("got %v", got)
	}
}

// receiver is a remote write server.
type receiver struct {
	status   int
	requests int
	series   []string // labels and value
	headers  http.Header
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.requests++
	r.headers = req.Header
	body, err := io.ReadAll(req.Body)
	if err == nil {
		body, err = snappy.Decode(nil, body)
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	each(body, func(_ protowire.Number, series []byte) {
		var text strings.Builder
		each(series, func(field protowire.Number, part []byte) {
			each(part, func(_ protowire.Number, value []byte) {
				if field == 1 {
					text.Write(value)
					text.WriteByte(' ')
				}
			})
		})
		const order = "service_name shop span_kind SPAN_KIND_SERVER span_name POST /order"
		r.series = append(r.series, strings.ReplaceAll(text.String(), order, "ORDER"))
	})
	w.WriteHeader(r.status)
}

// each calls f for each field of a message that has a length.
func each(message []byte, f func(protowire.Number, []byte)) {
	for len(message) > 0 {
		field, typ, n := protowire.ConsumeTag(message)
		message = message[n:]
		if typ == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			f(field, value)
		}
		message = message[protowire.ConsumeFieldValue(field, typ, message):]
	}
}

func TestRemoteWrite(t *testing.T) {
	r := &receiver{status: http.StatusNoContent}
	srv := httptest.NewServer(r)
	defer srv.Close()
	p := newProgram(t, func(c *config) {
		w := defaultRemoteWrite()
		w.Endpoint, w.Labels, w.MaxSamples = srv.URL+"/api/v1/write?token=secret", map[string]string{"cluster": "a"}, 3
		c.RemoteWrite, c.ServiceGraph = pipeline.Present(w), false
	})
	defer p.writer.client.Stop(t.Context()) //nolint:errcheck // it cannot fail
	p.stores(1, order, 0)
	p.step()
	want := []string{
		"__name__ traces_span_metrics_calls_total cluster a job span_metrics ORDER status_code STATUS_CODE_ERROR ",
		"__name__ traces_span_metrics_calls_total cluster a job span_metrics ORDER status_code STATUS_CODE_UNSET ",
		"__name__ traces_span_metrics_duration_milliseconds_bucket cluster a job span_metrics le 10.0 ORDER ",
		"__name__ traces_span_metrics_duration_milliseconds_bucket cluster a job span_metrics le 1000.0 ORDER ",
		"__name__ traces_span_metrics_duration_milliseconds_bucket cluster a job span_metrics le +Inf ORDER ",
		"__name__ traces_span_metrics_duration_milliseconds_sum cluster a job span_metrics ORDER ",
		"__name__ traces_span_metrics_duration_milliseconds_count cluster a job span_metrics ORDER ",
	}
	if !slices.Equal(r.series, want) {
		t.Errorf("got\n%s", strings.Join(r.series, "\n"))
	}
	version, encoding := r.headers.Get("X-Prometheus-Remote-Write-Version"), r.headers.Get("Content-Encoding")
	if r.requests != 3 || version != "0.1.0" || encoding != "snappy" {
		t.Errorf("%d requests, header %v", r.requests, r.headers)
	}
	for _, status := range []int{http.StatusBadRequest, http.StatusServiceUnavailable} {
		r.status = status
		err := p.update(t.Context())
		if err == nil || !strings.Contains(err.Error(), http.StatusText(status)) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v", err)
		}
	}
	got := p.fixture.Samples(t, "tracing_span_metrics_remote_write_samples_total", "result")
	if got["sent"] != 7 || got["rejected"] != 7 || got["failed"] != 3 {
		t.Errorf("got %v", got)
	}
}

// TestStopCountsTheLastSpans checks that spans which were stored after the last interval are sent.
func TestStopCountsTheLastSpans(t *testing.T) {
	r := &receiver{status: http.StatusOK}
	srv := httptest.NewServer(r)
	defer srv.Close()
	p := newProgram(t, func(c *config) {
		w := defaultRemoteWrite()
		w.Endpoint = srv.URL
		c.RemoteWrite, c.Interval, c.MaxDelay = pipeline.Present(w), pipeline.Duration(time.Hour), pipeline.Duration(4*time.Hour)
	})
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for len(p.fixture.Reports()) == 0 {
		time.Sleep(time.Millisecond)
	}
	if p.Addr("http") == "" || p.Addr("grpc") != "" {
		t.Errorf("addresses %q, %q", p.Addr("http"), p.Addr("grpc"))
	}
	p.stores(1, order, 0)
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.requests != 1 || len(r.series) == 0 {
		t.Errorf("%d requests with %d series", r.requests, len(r.series))
	}
}

func TestConfigIsChecked(t *testing.T) {
	for want, change := range map[string]func(*config){
		"storage: must be set":                        func(c *config) { c.Storage = pipeline.Ref[tracestore.Reader]{} },
		"interval: must be at most a quarter":         func(c *config) { c.Interval = pipeline.Duration(151 * time.Second) },
		"interval: must be at least 1s":               func(c *config) { c.Interval = 1 },
		"max_span_delay: must be whole minutes":       func(c *config) { c.MaxDelay = pipeline.Duration(90 * time.Second) },
		"max_series: must be above 0":                 func(c *config) { c.MaxSeries = 0 },
		"max_idle: must be at least twice":            func(c *config) { c.MaxIdle = c.MaxDelay },
		`namespace: "a-b" is not the beginning`:       func(c *config) { c.Namespace = "a-b" },
		"buckets: must be ascending":                  func(c *config) { c.Buckets = []pipeline.Duration{2, 2} },
		"exemplars: must be from 0 to 1000, not 1001": func(c *config) { c.Exemplars = 1001 },
		"max_scanned_spans: must be above 0":          func(c *config) { c.MaxScanned = 0 },
		"max_concurrent_scrapes: must be above 0":     func(c *config) { c.MaxScrapes = 0 },
		"service_graph_delay: must not be below":      func(c *config) { c.GraphDelay = -1 },
		"timeout: must be above 0":                    func(c *config) { c.Timeout = 0 },
	} {
		c := defaults()
		c.Storage = pipeline.BoundRef[tracestore.Reader](&store{})
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), strings.SplitN(want, ": ", 2)[1]) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	for want, change := range map[string]func(*remoteWriteConfig){
		"must be set; write a URL":     func(c *remoteWriteConfig) { c.Endpoint = "" },
		"must be snappy":               func(c *remoteWriteConfig) { c.Compression = "gzip" },
		"must be above 0, not 0":       func(c *remoteWriteConfig) { c.MaxSamples = 0 },
		`"a.b" is not the name of a l`: func(c *remoteWriteConfig) { c.Labels = map[string]string{"a.b": ""} },
		`"le" is set by the extension`: func(c *remoteWriteConfig) { c.Labels = map[string]string{"le": "5"} },
		`"__name__" is set by the ext`: func(c *remoteWriteConfig) { c.Labels = map[string]string{"__name__": "x"} },
	} {
		c := defaultRemoteWrite()
		c.HTTPConfig = client.DefaultHTTPConfig()
		c.Endpoint, c.Compression = "http://localhost:9090/api/v1/write", "snappy"
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

package tracing_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline"
)

func TestMain(m *testing.M) {
	if os.Getenv(decodeServer) != "" {
		runDecodeServer()
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if binaryDir != "" {
			os.RemoveAll(binaryDir) //nolint:errcheck // a folder of the system's temporary files
		}
		os.Exit(code)
	}))
}

// program is the preset all-in-one in this process, on free ports.
type program struct {
	t    *testing.T
	app  *pipeline.App
	log  *lockedBuffer
	stop func() error
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var anyPort = []string{
	"receivers::otlp::protocols::grpc::endpoint=localhost:0",
	"receivers::otlp::protocols::http::endpoint=localhost:0",
	"receivers::native::protocols::grpc::endpoint=localhost:0",
	"receivers::native::protocols::http::endpoint=localhost:0",
	"receivers::thriftudp::compact::endpoint=localhost:0",
	"receivers::thriftudp::binary::endpoint=localhost:0",
	"receivers::thriftudp::zipkin::endpoint=localhost:0",
	"extensions::sampling::http::endpoint=localhost:0",
	"extensions::query::http::endpoint=localhost:0",
	"extensions::query::grpc::endpoint=localhost:0",
	"extensions::admin::endpoint=localhost:0",
}

func start(t *testing.T, set ...string) *program {
	t.Helper()
	o := pipeline.LoadOptions{Factories: tracing.Components(), Presets: tracing.Presets()}
	for _, s := range slices.Concat(anyPort, []string{"service::data_dir=" + t.TempDir()}, set) {
		v, err := pipeline.ParseSet(s)
		if err != nil {
			t.Fatal(err)
		}
		o.Overrides = append(o.Overrides, v)
	}
	cfg, err := pipeline.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	return startConfig(t, cfg)
}

func startConfig(t *testing.T, cfg *pipeline.Config) *program {
	t.Helper()
	p := &program{t: t, log: &lockedBuffer{}}
	var err error
	if p.app, err = pipeline.New(cfg, pipeline.AppOptions{Log: p.log}); err != nil {
		t.Fatal(err)
	}
	if err := p.app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.stop = sync.OnceValue(func() error {
		http.DefaultClient.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		return p.app.Stop(ctx)
	})
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
		if t.Failed() {
			t.Logf("log:\n%s", p.log)
		}
	})
	return p
}

func (p *program) grpc() string { return p.app.Addr(pipeline.ID{Type: "otlp"}, "grpc") }
func (p *program) http() string { return p.app.Addr(pipeline.ID{Type: "otlp"}, "http") }
func (p *program) query() string {
	return "http://" + p.app.Addr(pipeline.ID{Type: "query"}, "http")
}
func (p *program) admin() string {
	return "http://" + p.app.Addr(pipeline.ID{Type: "admin"}, "http")
}

func fetch(t testing.TB, url string) (int, []byte) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b
}

// The query JSON, as its clients know it.
type (
	uiAnswer struct {
		Data   json.RawMessage
		Total  int
		Errors []struct {
			Code    int
			Msg     string
			TraceID string
		}
	}
	uiTrace struct {
		TraceID   string
		Spans     []uiSpan
		Processes map[string]uiProcess
		Warnings  []string
	}
	uiSpan struct {
		TraceID, SpanID, OperationName, ProcessID string
		References                                []uiRef
		StartTime, Duration                       int64
		Flags                                     uint32
		Tags                                      []uiTag
		Logs                                      []uiLog
		Warnings                                  []string
	}
	uiRef struct{ RefType, TraceID, SpanID string }
	uiLog struct {
		Timestamp int64
		Fields    []uiTag
	}
	uiTag struct {
		Key, Type string
		Value     json.RawMessage
	}
	uiProcess struct {
		ServiceName string
		Tags        []uiTag
	}
)

// String returns `key:type=value`.
func (t uiTag) String() string { return fmt.Sprintf("%s:%s=%s", t.Key, t.Type, t.Value) }

func tagStrings(tags []uiTag) []string {
	out := make([]string, len(tags))
	for i, t := range tags {
		out[i] = t.String()
	}
	slices.Sort(out)
	return out
}

// ask gets a path of the query API and decodes data.
func ask[T any](p *program, path string) T {
	p.t.Helper()
	status, body := fetch(p.t, p.query()+path)
	var a uiAnswer
	if err := json.Unmarshal(body, &a); err != nil || status != http.StatusOK || len(a.Errors) > 0 {
		p.t.Fatalf("GET %s: %d %v %s", path, status, err, body)
	}
	var data T
	if err := json.Unmarshal(a.Data, &data); err != nil {
		p.t.Fatalf("GET %s: %v in %s", path, err, a.Data)
	}
	return data
}

// search returns the ids of the traces that a search finds, in the order of the answer.
func (p *program) search(params ...string) []string {
	p.t.Helper()
	v := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		v.Add(params[i], params[i+1])
	}
	ids := []string{}
	for _, tr := range ask[[]uiTrace](p, "/api/traces?"+v.Encode()) {
		ids = append(ids, tr.TraceID)
	}
	return ids
}

// metrics returns the samples of /metrics by name and labels as they are written.
func metrics(t testing.TB, adminURL string) map[string]float64 {
	t.Helper()
	status, body := fetch(t, adminURL+"/metrics")
	if status != http.StatusOK {
		t.Fatalf("/metrics: %d %s", status, body)
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		var v float64
		if _, err := fmt.Sscan(line[i+1:], &v); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out[line[:i]] = v
	}
	return out
}

// checkAccounting checks the law: receivers received = accepted + refused, exporters in = sent + refused; and that nothing is in flight.
func checkAccounting(t *testing.T, m map[string]float64) {
	t.Helper()
	sums := map[string]float64{}
	for k, v := range m {
		for _, o := range []string{"received", "accepted", "in", "sent", "refused"} {
			for _, kind := range []string{"receiver", "exporter"} {
				if strings.HasPrefix(k, "tracing_pipeline_spans_total{") && strings.Contains(k, `kind="`+kind+`"`) && strings.Contains(k, `outcome="`+o+`"`) {
					sums[kind+" "+o] += v
				}
			}
		}
	}
	if sums["receiver received"] != sums["receiver accepted"]+sums["receiver refused"] {
		t.Errorf("receivers do not balance: %v", sums)
	}
	if sums["exporter in"] != sums["exporter sent"]+sums["exporter refused"] {
		t.Errorf("exporters do not balance: %v", sums)
	}
	if m["tracing_inflight_bytes"] != 0 {
		t.Errorf("%v bytes are still in flight", m["tracing_inflight_bytes"])
	}
}

package canary

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tracing-backend/tracing/internal/translate/uijson"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// someTime is the time from which traces of tests are generated.
var someTime = time.Date(2026, 11, 21, 17, 59, 59, 0, time.UTC)

// answerOf returns what the query API shows of a request.
func answerOf(t testing.TB, otlp []byte) []byte {
	t.Helper()
	b, err := otlpdata.FromOTLP(otlp, otlpdata.Meta{}, otlpdata.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	dst, err := uijson.AppendTrace([]byte(`{"data":[`), uijson.Options{}, b)
	if err != nil {
		t.Fatal(err)
	}
	return append(dst, `],"total":0,"limit":0,"offset":0,"errors":null}`...)
}

// backend is a backend in memory: a transport without a network, so that tests control the clock.
type backend struct {
	t      *testing.T
	mu     sync.Mutex
	answer map[string][]byte // by trace id
	reads  map[string]int
	// change edits the response to the nth reading of a trace; may be nil.
	change func(n int, r *http.Request, status int, body string) (int, string)
	refuse func(n int) (status int, body string) // the nth write; status 0 takes it
	writes int
	tenant string // that requests must have
}

func newBackend(t *testing.T) *backend {
	return &backend{t: t, answer: map[string][]byte{}, reads: map[string]int{}}
}

// RoundTrip implements http.RoundTripper.
func (b *backend) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	if got := r.Header.Get(tenantHeader); got != b.tenant {
		b.t.Errorf("a request of tenant %q", got)
	}
	if r.Method == http.MethodPost {
		b.write(w, r)
	} else {
		b.read(w, r)
	}
	return w.Result(), nil
}

func (b *backend) write(w http.ResponseWriter, r *http.Request) {
	b.writes++
	if b.refuse != nil {
		if status, body := b.refuse(b.writes); status != 0 {
			w.WriteHeader(status)
			io.WriteString(w, body)
			return
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || r.URL.String() != "http://in/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		b.t.Errorf("%s %s: %v", r.URL, r.Header, err)
	}
	answer := answerOf(b.t, body)
	var parsed struct{ Data []shownTrace }
	if err := json.Unmarshal(answer, &parsed); err != nil {
		b.t.Error(err)
	}
	b.answer[parsed.Data[0].TraceID] = answer
}

func (b *backend) read(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	if q := r.URL.Query(); id == "traces" {
		var tags map[string]string
		if err := json.Unmarshal([]byte(q.Get("tags")), &tags); err != nil || len(tags) != 2 || q.Get("operation") != rootOperation {
			b.t.Errorf("%s: %v", r.URL, err)
		}
		id = tags["canary.trace"]
	}
	status, body := http.StatusOK, string(b.answer[id])
	if body == "" {
		status, body = http.StatusNotFound, `{"data":null,"errors":[{"code":404,"msg":"trace not found"}]}`
	}
	b.reads[id]++
	if b.change != nil {
		status, body = b.change(b.reads[id], r, status, body)
	}
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// run runs a canary against the backend.
func (b *backend) run(ctx context.Context, o Options) (Summary, []observer.LoggedEntry, *prometheus.Registry) {
	b.t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	registry := prometheus.NewRegistry()
	o.OTLP, o.Query, o.Seed = "http://in/", "http://out", 1
	if o.Remember == 0 {
		o.Remember = 1000
	}
	c, err := New(o, Outside{Now: time.Now, Transport: b, Logger: zap.New(core), Metrics: registry})
	if err != nil {
		b.t.Fatal(err)
	}
	return c.Run(ctx), logs.All(), registry
}

// metric returns the value of a series, given as name and label values.
func metric(t *testing.T, reg *prometheus.Registry, name string, labels ...string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			if f.GetName() == "tracing_canary_"+name && fmt.Sprint(values) == fmt.Sprint(labels) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	t.Errorf("there is no metric %s %q", name, labels)
	return 0
}

package debug

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// request returns a batch with all fields of a span.
func request(t *testing.T) *otlpdata.Batch {
	t.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.SetSchemaUrl("https://schema.test/1")
	rs.Resource().Attributes().PutStr("service.name", "shop")
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("http")
	ss.Scope().SetVersion("1.2")
	s := ss.Spans().AppendEmpty()
	s.SetName("GET /cart")
	s.SetTraceID([16]byte{15: 1})
	s.SetSpanID([8]byte{7: 2})
	s.SetParentSpanID([8]byte{7: 3})
	s.SetKind(ptrace.SpanKindServer)
	s.SetStartTimestamp(1_700_000_000_000_000_000)
	s.SetEndTimestamp(1_700_000_000_000_001_000)
	s.Status().SetCode(ptrace.StatusCodeError)
	s.Status().SetMessage("no cart")
	s.Attributes().PutInt("http.response.status_code", 404)
	s.Attributes().PutBool("cached", false)
	s.Attributes().PutDouble("ratio", 0.5)
	s.Attributes().PutEmptyBytes("raw").FromRaw([]byte("\x00\xff"))
	s.Attributes().PutEmptySlice("tags").AppendEmpty().SetStr("a \"b\"")
	s.Attributes().PutStr("bad", "utf8 \xff")
	e := s.Events().AppendEmpty()
	e.SetName("exception")
	e.SetTimestamp(1_700_000_000_000_000_500)
	e.Attributes().PutStr("exception.type", "NotFound")
	l := s.Links().AppendEmpty()
	l.SetTraceID([16]byte{0: 1})
	l.SetSpanID([8]byte{7: 9})
	l.Attributes().PutStr("why", "retry")
	ss.Spans().AppendEmpty().SetName("second")
	return otlpdata.FromTraces(td, otlpdata.Meta{Tenant: "acme", Format: "otlp", Transport: "grpc"})
}

// run sends n batches and returns the log without timestamps.
func run(t *testing.T, cfg config, now func() time.Time, n int) string {
	t.Helper()
	return runBatch(t, request(t), cfg, now, n)
}

// runBatch is like run with a given batch.
func runBatch(t *testing.T, b *otlpdata.Batch, cfg config, now func() time.Time, n int) string {
	t.Helper()
	var out bytes.Buffer
	enc := zap.NewProductionEncoderConfig()
	enc.TimeKey = ""
	enc.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(enc), zapcore.AddSync(&out), zap.InfoLevel))
	e, err := newExporter(pipeline.Settings{Logger: log, Env: pipeline.Env{Now: now}}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		if err := e.Consume(context.Background(), b); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func TestVerbosity(t *testing.T) {
	for _, verbosity := range []string{verbosityBasic, verbosityNormal, verbosityDetailed} {
		got := run(t, config{Verbosity: verbosity, Initial: 1}, time.Now, 1)
		file := filepath.Join("testdata", verbosity+".jsonl")
		golden.Check(t, file, got)
	}
}

// Log records are written like spans.
func TestVerbosityOfLogs(t *testing.T) {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.SetSchemaUrl("https://schema.test/1")
	rl.Resource().Attributes().PutStr("service.name", "shop")
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName("logger")
	sl.Scope().SetVersion("1.2")
	r := sl.LogRecords().AppendEmpty()
	r.SetTimestamp(1_700_000_000_000_000_000)
	r.SetObservedTimestamp(1_700_000_000_000_000_001)
	r.SetSeverityNumber(plog.SeverityNumberError)
	r.SetSeverityText("ERROR")
	r.SetEventName("exception")
	r.SetTraceID([16]byte{15: 1})
	r.SetSpanID([8]byte{7: 2})
	r.Body().SetEmptyMap().PutStr("message", "no cart")
	r.Attributes().PutStr("exception.type", "NotFound")
	sl.LogRecords().AppendEmpty().Body().SetStr("text")
	b, err := otlpdata.FromLogs(ld, otlpdata.Meta{Tenant: "acme", Format: "otlp", Transport: "grpc"})
	if err != nil {
		t.Fatal(err)
	}
	for _, verbosity := range []string{verbosityBasic, verbosityNormal, verbosityDetailed} {
		file := filepath.Join("testdata", "logs-"+verbosity+".jsonl")
		golden.Check(t, file, runBatch(t, b, config{Verbosity: verbosity, Initial: 1}, time.Now, 1))
	}
}

func TestSampling(t *testing.T) {
	f := func(initial, thereafter, batches, perSecond, want int) {
		t.Helper()
		calls := 0
		now := func() time.Time {
			calls++
			return time.Unix(int64(1000+(calls-1)/perSecond), 0)
		}
		got := run(t, config{Verbosity: verbosityBasic, Initial: initial, Thereafter: thereafter}, now, batches)
		if lines := strings.Count(got, "\n"); lines != want {
			t.Errorf("initial %d, thereafter %d: %d of %d batches written, want %d", initial, thereafter, lines, batches, want)
		}
	}
	f(2, 1, 10, 10, 10)
	f(2, 0, 10, 10, 2)
	f(2, 4, 10, 10, 4)
	f(0, 5, 10, 10, 2)
	f(2, 0, 10, 5, 4)
}

func TestConfig(t *testing.T) {
	c := defaults()
	if err := c.Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	c = config{Verbosity: "loud", Initial: -1, Thereafter: -1}
	err := c.Validate()
	for _, key := range []string{"verbosity", "sampling_initial", "sampling_thereafter"} {
		if !hasKey(err, key) {
			t.Errorf("%s: not reported in %v", key, err)
		}
	}
	f := Factory()
	if got := fmt.Sprint(f.Kind(), " ", f.Type()); got != "exporter debug" {
		t.Errorf("factory of %s", got)
	}
	if k := (*exporter)(nil).Durability(); k != pipeline.DurabilityNone {
		t.Errorf("durability %s", k)
	}
}

func hasKey(err error, key string) bool {
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return false
	}
	for _, e := range many.Unwrap() {
		var k *pipeline.KeyError
		if errors.As(e, &k) && k.Key == key {
			return true
		}
	}
	return false
}

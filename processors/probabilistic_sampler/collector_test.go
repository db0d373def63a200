package probabilisticsampler

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// vectors are decisions of the OpenTelemetry Collector; see testdata/collector/main.go.
type vectors struct {
	Runs []struct {
		Config      vectorConfig
		Sampled     string
		Tracestates string
	}
	Spans []struct {
		TraceID    string `json:"trace_id"`
		Tracestate string
		Priority   any
	}
	Results []struct {
		Config  vectorConfig
		Results []string
	}
}

type vectorConfig struct {
	Mode       string
	HashSeed   uint32  `json:"hash_seed"`
	Percentage float64 `json:"sampling_percentage"`
	Precision  int     `json:"sampling_precision"`
	FailClosed bool    `json:"fail_closed"`
}

func (c vectorConfig) build(t *testing.T) (*sampler, *sink) {
	return build(t, c.Percentage, c.Mode, func(to *Config) {
		to.HashSeed, to.FailClosed = c.HashSeed, c.FailClosed
		if c.Precision > 0 {
			to.Precision = c.Precision
		}
	})
}

func readVectors(t *testing.T) (v vectors) {
	t.Helper()
	b, err := os.ReadFile("testdata/collector.json")
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// For the same mode, percentage and seed, decisions and tracestates equal the Collector's.
func TestCollectorDecidesTheSame(t *testing.T) {
	for _, run := range readVectors(t).Runs {
		s, next := run.Config.build(t)
		r, want := rand.New(rand.NewPCG(1, 2)), bytesOf(t, run.Sampled)
		td, spans := ptrace.NewTraces(), 8*len(want)
		all := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
		for i := range spans {
			var id pcommon.TraceID
			binary.BigEndian.PutUint64(id[:], r.Uint64())
			binary.BigEndian.PutUint64(id[8:], r.Uint64())
			span := all.AppendEmpty()
			span.SetTraceID(id)
			span.SetName(fmt.Sprint(i))
		}
		got := sampled(t, s, next, otlpdata.FromTraces(td, otlpdata.Meta{}))
		states := sha256.New()
		for i := range spans {
			state, kept := got[fmt.Sprint(i)]
			if kept != (want[i/8]>>(i%8)&1 == 1) {
				t.Fatalf("%+v: trace %d: sampled: %t", run.Config, i, kept)
			}
			if kept {
				if state == "" && run.Config.Mode != modeHashSeed {
					state = "ot=th:0" // only the Collector writes it if all traces are sampled
				}
				fmt.Fprintln(states, state)
			}
		}
		if hex.EncodeToString(states.Sum(nil)) != run.Tracestates {
			t.Errorf("%+v: other tracestates", run.Config)
		}
	}
}

func bytesOf(t *testing.T, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// In the mode hash_seed, spans with a tracestate or a priority have the same outcome as in the
// Collector.
func TestCollectorTreatsSpansTheSame(t *testing.T) {
	v := readVectors(t)
	for _, results := range v.Results {
		s, next := results.Config.build(t)
		for i, vector := range v.Spans {
			td := ptrace.NewTraces()
			span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
			span.SetTraceID(pcommon.TraceID(bytesOf(t, vector.TraceID)))
			span.TraceState().FromRaw(vector.Tracestate)
			setPriority(t, span, vector.Priority)
			got, kept := sampled(t, s, next, otlpdata.FromTraces(td, otlpdata.Meta{}))[""]
			if !kept {
				got = "dropped"
			}
			if got != results.Results[i] {
				t.Errorf("%+v: %+v: %q, want %q", results.Config, vector, got, results.Results[i])
			}
		}
	}
}

// setPriority sets the attribute. Whole numbers are integers.
func setPriority(t *testing.T, span ptrace.Span, value any) {
	t.Helper()
	if f, ok := value.(float64); ok && f == math.Trunc(f) {
		value = int64(f)
	}
	if value != nil {
		if err := span.Attributes().PutEmpty(priorityKey).FromRaw(value); err != nil {
			t.Fatal(err)
		}
	}
}

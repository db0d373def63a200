// Command collector prints the decisions of the OpenTelemetry Collector's probabilistic sampler, as
// test vectors:
//
//	cd processors/probabilistic_sampler/testdata/collector && go run . > ../collector.json
//
// It is a separate module, because the processor is not needed elsewhere.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"log"
	"math/rand/v2"
	"os"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/probabilisticsamplerprocessor"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
)

// traces is the number of random traces for each configuration.
const traces = 1000

// run is one configuration. Its spans have ids from a PCG with the seeds 1 and 2.
type run struct {
	Config      map[string]any `json:"config"`
	Sampled     string         `json:"sampled"`     // a bit for each trace, in hexadecimal
	Tracestates string         `json:"tracestates"` // SHA-256 of the tracestates of sampled spans, each followed by a line end
}

// span is a span with a tracestate or a priority.
type span struct {
	TraceID    string `json:"trace_id"`
	Tracestate string `json:"tracestate"`
	Priority   any    `json:"priority"`
}

// results are the outcomes for all spans with one configuration: the tracestate, or "dropped".
type results struct {
	Config  map[string]any `json:"config"`
	Results []string       `json:"results"`
}

func main() {
	var out struct {
		Runs    []run     `json:"runs"`
		Spans   []span    `json:"spans"`
		Results []results `json:"results"`
	}
	for _, percentage := range []float64{0, 0.005, 0.0123, 0.1, 1, 3.3, 10, 15.3, 33.333, 50, 66.6, 90, 99.99, 100, 150} {
		for _, seed := range []uint32{0, 1, 22, 4294967295} {
			out.Runs = append(out.Runs, runOf(map[string]any{"mode": "hash_seed", "hash_seed": seed, "sampling_percentage": percentage}))
		}
		for _, mode := range []string{"equalizing", "proportional"} {
			for _, precision := range []int{4, 14} {
				out.Runs = append(out.Runs, runOf(map[string]any{"mode": mode, "sampling_precision": precision, "sampling_percentage": percentage}))
			}
		}
	}
	out.Spans = spans()
	for _, percentage := range []float64{40, 100} {
		for _, closed := range []bool{true, false} {
			config := map[string]any{"mode": "hash_seed", "sampling_percentage": percentage, "fail_closed": closed}
			out.Results = append(out.Results, resultsOf(config, out.Spans))
		}
	}
	check(json.NewEncoder(os.Stdout).Encode(out))
}

func runOf(config map[string]any) run {
	random := rand.New(rand.NewPCG(1, 2))
	sample := build(config)
	bits, states := make([]byte, traces/8), sha256.New()
	for i := range traces {
		var id pcommon.TraceID
		binary.BigEndian.PutUint64(id[:8], random.Uint64())
		binary.BigEndian.PutUint64(id[8:], random.Uint64())
		if state, sampled := sample(id, "", nil); sampled {
			bits[i/8] |= 1 << (i % 8)
			states.Write([]byte(state + "\n"))
		}
	}
	return run{config, hex.EncodeToString(bits), hex.EncodeToString(states.Sum(nil))}
}

func spans() (all []span) {
	for _, id := range []string{"0102030405060708090a0b0c0d0e0f10", "ffffffffffffffffffffffffffffffff", "00000000000000000000000000000000"} {
		for _, state := range []string{"", "a=b", "ot=x:y,a=b", "a=b , ot=rv:fffffffffffff0", "ot=th:8", "ot=th:c;rv:e0000000000000,b=c", "ot=th:", "A=b", "ot=th:x"} {
			for _, priority := range []any{nil, 0, 1, -1, 0.5, "0", "2.5", "high", true} {
				all = append(all, span{id, state, priority})
			}
		}
	}
	return all
}

func resultsOf(config map[string]any, all []span) results {
	sample, r := build(config), results{Config: config}
	for _, s := range all {
		var id pcommon.TraceID
		_, err := hex.Decode(id[:], []byte(s.TraceID))
		check(err)
		result, sampled := sample(id, s.Tracestate, s.Priority)
		if !sampled {
			result = "dropped"
		}
		r.Results = append(r.Results, result)
	}
	return r
}

// build returns a function that passes one span to a new processor.
func build(config map[string]any) func(pcommon.TraceID, string, any) (string, bool) {
	factory := probabilisticsamplerprocessor.NewFactory()
	c := factory.CreateDefaultConfig()
	check(confmap.NewFromStringMap(config).Unmarshal(c))
	check(c.(interface{ Validate() error }).Validate())
	sink := &consumertest.TracesSink{}
	set := processortest.NewNopSettings(component.MustNewType("probabilistic_sampler"))
	p, err := factory.CreateTraces(context.Background(), set, c, sink)
	check(err)
	return func(id pcommon.TraceID, state string, priority any) (string, bool) {
		return pass(p, sink, id, state, priority)
	}
}

func pass(p processor.Traces, sink *consumertest.TracesSink, id pcommon.TraceID, state string, priority any) (string, bool) {
	sink.Reset()
	td := ptrace.NewTraces()
	s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetTraceID(id)
	s.TraceState().FromRaw(state)
	if priority != nil {
		check(s.Attributes().PutEmpty("sampling.priority").FromRaw(priority))
	}
	check(p.ConsumeTraces(context.Background(), td))
	if sink.SpanCount() == 0 {
		return "", false
	}
	return sink.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).TraceState().AsRaw(), true
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

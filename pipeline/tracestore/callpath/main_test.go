package callpath

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sample is a span of a hand-made trace; times in nanoseconds after begin.
type sample struct {
	name     string
	service  string // "": that of the parent
	at, long int
	kind     int32
	failed   bool
	orphan   bool
	children []sample
}

const begin = 1_000_000

// spansOf returns the spans of hand-made traces, with the ids 1, 2, ... in the order of appearance.
func spansOf(tops ...sample) (out []tracestore.SummarySpan) {
	var add func(s sample, parent otlpdata.SpanID, service string)
	add = func(s sample, parent otlpdata.SpanID, service string) {
		if s.service != "" {
			service = s.service
		}
		if s.orphan {
			parent = otlpdata.SpanID{0xff}
		}
		id := otlpdata.SpanID{0, byte(len(out) / 256), byte(len(out)%256 + 1)}
		out = append(out, tracestore.SummarySpan{ID: id, Parent: parent, Start: uint64(begin + s.at), Duration: uint64(s.long),
			Service: service, Name: s.name, Kind: s.kind, Failed: s.failed})
		for _, c := range s.children {
			add(c, id, service)
		}
	}
	for _, s := range tops {
		add(s, otlpdata.SpanID{}, "web")
	}
	return out
}

func treeOf(tb testing.TB, tops ...sample) *Tree {
	tb.Helper()
	t := new(Tree)
	t.Build(spansOf(tops...))
	return t
}

package otlpdata_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// spanList lists the spans of batches with everything above them.
type spanList struct {
	above, scope string
	spans        []string
}

func (l *spanList) Resource(r *otlpdata.Resource) error {
	l.above = fmt.Sprintf("%x %s", r.Raw, r.SchemaURL)
	return nil
}

func (l *spanList) Scope(s *otlpdata.Scope) error {
	l.scope = fmt.Sprintf("%x %s", s.Raw, s.SchemaURL)
	return nil
}

func (l *spanList) Span(s *otlpdata.Span) error {
	l.spans = append(l.spans, fmt.Sprintf("%s/%s/%x", l.above, l.scope, s.Raw))
	return nil
}

func spansOf(t testing.TB, batches ...*otlpdata.Batch) []string {
	t.Helper()
	var l spanList
	for _, b := range batches {
		if err := b.Walk(&l); err != nil {
			t.Fatal(err)
		}
	}
	return l.spans
}

// checkSplit checks that the parts have all spans in order and are within the limits.
func checkSplit(t *testing.T, b *otlpdata.Batch, maxSpans, maxBytes int) {
	t.Helper()
	parts, err := b.Split(maxSpans, maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	if b.Len() == 0 && maxBytes > 0 && b.Size() > maxBytes {
		if len(parts) != 0 {
			t.Errorf("%d parts without spans", len(parts))
		}
		return
	}
	if got, want := spansOf(t, parts...), spansOf(t, b); !slices.Equal(got, want) {
		t.Errorf("at most %d spans and %d bytes: got %q\nwant %q", maxSpans, maxBytes, got, want)
	}
	spans := 0
	for _, p := range parts {
		spans += p.Len()
		tooLong := maxSpans > 0 && p.Len() > maxSpans
		tooLarge := maxBytes > 0 && p.Size() > maxBytes && p.Len() > 1
		if tooLong || tooLarge || p.Meta() != b.Meta() || p.Len() == 0 && b.Len() > 0 {
			t.Errorf("at most %d spans and %d bytes: a part has %d spans and %d bytes, %+v", maxSpans, maxBytes, p.Len(), p.Size(), p.Meta())
		}
	}
	if spans != b.Len() {
		t.Errorf("at most %d spans and %d bytes: parts have %d of %d spans", maxSpans, maxBytes, spans, b.Len())
	}
}

// nestedRequest returns a request with several resources and scopes.
func nestedRequest(t testing.TB) *otlpdata.Batch {
	t.Helper()
	var out otlpdata.Builder
	for r := range 3 {
		out.Resource([]otlpdata.KeyValue{{Key: "service.name", Value: otlpdata.StringValue(fmt.Sprint("service", r))}})
		for s := range 3 {
			out.Scope(fmt.Sprint("scope", s), "1", nil)
			for i := range 4 * s {
				out.Span(&otlpdata.Span{Name: fmt.Sprint("span", i), TraceID: otlpdata.TraceID{1}, SpanID: otlpdata.SpanID{byte(i)}})
			}
		}
	}
	b, err := otlpdata.FromOTLP(out.Bytes(), otlpdata.Meta{Tenant: "acme", Format: "otlp"}, otlpdata.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSplit(t *testing.T) {
	one := nestedRequest(t)
	joined, err := otlpdata.Concat(one, one)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []*otlpdata.Batch{one, joined} {
		for maxSpans := range b.Len() + 2 {
			checkSplit(t, b, maxSpans, 0)
		}
		for maxBytes := 0; maxBytes < b.Size()+100; maxBytes += 37 {
			checkSplit(t, b, 0, maxBytes)
			checkSplit(t, b, 5, maxBytes)
		}
	}
	if parts, err := one.Split(one.Len(), one.Size()); err != nil || len(parts) != 1 || parts[0] != one {
		t.Errorf("a batch within the limits: %d parts, %v", len(parts), err)
	}
	if parts, err := one.Split(10, 0); err != nil || len(parts) != 4 || parts[0].Len() != 10 || parts[3].Len() != 6 {
		t.Errorf("%d parts, %v", len(parts), err)
	}
}

// A small request must not become gigabytes because each part repeats its resource.
func TestSplitRepeatsLargeResource(t *testing.T) {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("large", strings.Repeat("x", 1<<20))
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for range 5000 {
		spans.AppendEmpty().SetName("a")
	}
	b := otlpdata.FromTraces(td, otlpdata.Meta{})
	for _, limits := range [][2]int{{1, 0}, {0, 1000}} {
		if parts, err := b.Split(limits[0], limits[1]); !errors.Is(err, otlpdata.ErrManyCopies) || parts != nil {
			t.Errorf("limits %v: %d parts, %v", limits, len(parts), err)
		}
	}
	if parts, err := b.Split(1000, 0); err != nil || len(parts) != 5 {
		t.Errorf("%d parts, %v", len(parts), err)
	}
}

// FuzzSplit splits arbitrary requests.
func FuzzSplit(f *testing.F) {
	encoded, err := nestedRequest(f).Encoded()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encoded, 3, 0)
	f.Add(encoded, 0, 50)
	f.Add([]byte("\n\x00"), 1, 1)
	// Scope spans in field 1000.
	f.Add([]byte{0x0a, 0x0f, 0xc2, 0x3e, 0x0c, 0x12, 0x0a, 0x0a, 0x08, 1, 2, 3, 4, 5, 6, 7, 8}, 1, 1)
	f.Fuzz(func(t *testing.T, body []byte, maxSpans, maxBytes int) {
		b, err := otlpdata.FromOTLP(body, otlpdata.Meta{}, otlpdata.Limits{})
		if err == nil {
			checkSplit(t, b, maxSpans, maxBytes)
		}
	})
}

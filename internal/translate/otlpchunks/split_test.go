package otlpchunks

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// request returns spans of two resources and three scopes with names of the given length.
func request(tb testing.TB, spans int) []byte {
	tb.Helper()
	td := ptrace.NewTraces()
	for r := range 2 {
		rs := td.ResourceSpans().AppendEmpty()
		rs.SetSchemaUrl("schema")
		rs.Resource().Attributes().PutStr("service.name", fmt.Sprint("service", r))
		for s := range 3 {
			ss := rs.ScopeSpans().AppendEmpty()
			ss.Scope().SetName(fmt.Sprint("scope", s))
			for i := range spans {
				ss.Spans().AppendEmpty().SetName(fmt.Sprint("span", r, s, i) + string(bytes.Repeat([]byte("x"), i%7*20)))
			}
		}
	}
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// everySpan collects the spans of requests with their resources and scopes.
type everySpan struct {
	out   []string
	above string
	scope string
}

func (e *everySpan) Resource(r *otlpdata.Resource) error {
	e.above = fmt.Sprintf("%x %q", r.Raw, r.SchemaURL)
	return nil
}

func (e *everySpan) Scope(s *otlpdata.Scope) error {
	e.scope = fmt.Sprintf("%x %q", s.Raw, s.SchemaURL)
	return nil
}

func (e *everySpan) Span(s *otlpdata.Span) error {
	e.out = append(e.out, fmt.Sprintf("%s %s %x", e.above, e.scope, s.Raw))
	return nil
}

// checkSplit splits a request and checks that all spans are present and the messages are as few as
// possible.
func checkSplit(t *testing.T, chunks [][]byte, limit int) (messages int) {
	t.Helper()
	parts := make([]*otlpdata.Batch, len(chunks))
	for i, c := range chunks {
		parts[i] = otlpdata.FromStored(c, otlpdata.Meta{})
	}
	b, err := otlpdata.Concat(parts...)
	if err != nil {
		t.Fatal(err)
	}
	var before, after everySpan
	if err := b.Walk(&before); err != nil {
		t.Fatal(err)
	}
	err = Split(b, limit, func(m []byte, spans int) error {
		messages++
		had := len(after.out)
		if err := otlpdata.Walk(m, &after); err != nil {
			t.Fatal(err)
		}
		if len(after.out)-had != spans || spans == 0 || len(m) > limit && spans > 1 {
			t.Errorf("message of %d bytes has %d spans, but send got %d", len(m), len(after.out)-had, spans)
		}
		return nil
	})
	if err != nil || !slices.Equal(before.out, after.out) {
		t.Errorf("limit %d: error %v, %d spans of %d", limit, err, len(after.out), len(before.out))
	}
	return messages
}

func TestSplit(t *testing.T) {
	all := request(t, 50)
	for limit, want := range map[int]int{1: 300, 300: 0, 1000: 0, len(all) + 1000: 1} {
		if n := checkSplit(t, [][]byte{all}, limit); want > 0 && n != want {
			t.Errorf("limit %d: %d messages, want %d", limit, n, want)
		}
	}
	if n := checkSplit(t, [][]byte{all, nil, all}, 3*len(all)); n != 1 {
		t.Errorf("%d messages, want 1", n)
	}
	if n := checkSplit(t, [][]byte{request(t, 0)}, 10); n != 0 {
		t.Errorf("no spans became %d messages", n)
	}
	stop := errors.New("stop")
	if err := Split(otlpdata.FromStored(all, otlpdata.Meta{}), 100, func([]byte, int) error { return stop }); err != stop {
		t.Errorf("error %v", err)
	}
}

func FuzzSplit(f *testing.F) {
	f.Add(request(f, 3), 100)
	f.Add(request(f, 1), 1)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		if _, err := otlpdata.FromOTLP(b, otlpdata.Meta{}, otlpdata.Limits{}); err == nil {
			checkSplit(t, [][]byte{b}, max(limit, 1))
		}
	})
}

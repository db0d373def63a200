package harness

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// SentSpans records the spans that a test has sent, and which of them were acknowledged. It is safe
// for concurrent use.
type SentSpans struct {
	mu     sync.Mutex
	traces map[string]map[string]bool // trace id -> span id -> acknowledged
}

// NewSentSpans returns an empty record.
func NewSentSpans() *SentSpans { return &SentSpans{traces: make(map[string]map[string]bool)} }

// Record records the spans of an OTLP request, before it is sent and again when it is acknowledged.
func (l *SentSpans) Record(tb testing.TB, body []byte, acknowledged bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := otlpdata.Walk(body, recorder{l, acknowledged}); err != nil {
		tb.Error(err)
	}
}

// recorder adds the spans of a request to sent. The caller holds its lock.
type recorder struct {
	sent         *SentSpans
	acknowledged bool
}

func (recorder) Resource(*otlpdata.Resource) error { return nil }

func (recorder) Scope(*otlpdata.Scope) error { return nil }

func (r recorder) Span(s *otlpdata.Span) error {
	traces := r.sent.traces
	spans := traces[s.TraceID.String()]
	if spans == nil {
		spans = make(map[string]bool)
		traces[s.TraceID.String()] = spans
	}
	spans[s.SpanID.String()] = spans[s.SpanID.String()] || r.acknowledged
	return nil
}

// Check queries every trace and checks that each acknowledged span is found exactly once, and that
// no span is found that was not sent. With several programs, all spans of a trace must be at one of
// them. It returns the number of acknowledged spans and of spans found.
func (l *SentSpans) Check(tb testing.TB, queryURLs ...string) (acknowledged, found int) {
	tb.Helper()
	return l.CheckCounts(tb, func(trace string) map[string]int { return countsAtOne(tb, queryURLs, trace) })
}

// CheckCounts is like [SentSpans.Check] for a store that counts returns the spans of: how often
// each span id occurs in a trace.
func (l *SentSpans) CheckCounts(tb testing.TB, counts func(trace string) map[string]int) (acknowledged, found int) {
	tb.Helper()
	for trace, spans := range l.traces {
		have := counts(trace)
		for id, n := range have {
			if _, sent := spans[id]; !sent || n != 1 {
				tb.Errorf("trace %s: span %s was found %d times; sent: %v", trace, id, n, sent)
			}
			found++
		}
		for id, acked := range spans {
			if !acked {
				continue
			}
			if acknowledged++; have[id] == 0 {
				tb.Errorf("trace %s: span %s was acknowledged and is lost", trace, id)
			}
		}
		if tb.Failed() {
			return acknowledged, found
		}
	}
	return acknowledged, found
}

// countsAtOne returns the counts of the only program that has a trace.
func countsAtOne(tb testing.TB, queryURLs []string, trace string) (counts map[string]int) {
	tb.Helper()
	for _, url := range queryURLs {
		have := SpanCounts(tb, url, trace)
		if len(have) > 0 && len(counts) > 0 {
			tb.Errorf("trace %s is divided: %d spans at %s, %d at another program", trace, len(have), url, len(counts))
		}
		if len(have) > 0 {
			counts = have
		}
	}
	return counts
}

// SpanCounts returns how often each span id occurs in a trace, or nil if the trace is not found.
func SpanCounts(tb testing.TB, queryURL, trace string) map[string]int {
	tb.Helper()
	status, body := Fetch(tb, queryURL+"/api/traces/"+trace)
	if status == http.StatusNotFound {
		return nil
	}
	var answer struct{ Data []UITrace }
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK {
		tb.Fatalf("GET /api/traces/%s: status %d, %v", trace, status, err)
	}
	counts := make(map[string]int)
	for _, tr := range answer.Data {
		for _, s := range tr.Spans {
			counts[s.SpanID]++
		}
	}
	return counts
}

// Compare compares the record with the number of times that each span is stored, by "trace span".
// It returns the number of acknowledged spans that are not stored, and of spans that are stored
// more than once.
func (l *SentSpans) Compare(stored map[string]int) (lost, duplicates int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for trace, spans := range l.traces {
		for id, acknowledged := range spans {
			switch n := stored[trace+" "+id]; {
			case n > 1:
				duplicates++
			case n == 0 && acknowledged:
				lost++
			}
		}
	}
	return lost, duplicates
}

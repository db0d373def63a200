package harness

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// FromEnv returns the number in an environment variable, or otherwise if the variable is not set.
func FromEnv(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// Ledger says of every span that was sent whether it was acknowledged.
type Ledger struct {
	mu     sync.Mutex
	traces map[string]map[string]bool // trace id -> span id -> acknowledged
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger { return &Ledger{traces: make(map[string]map[string]bool)} }

// Note records the spans of a request, and whether the request was acknowledged. It is safe for concurrent use.
func (l *Ledger) Note(t testing.TB, body []byte, acked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := ledgerVisitor{l, acked}
	if err := otlpdata.Walk(body, v); err != nil {
		t.Error(err)
	}
}

type ledgerVisitor struct {
	*Ledger
	acked bool
}

func (ledgerVisitor) Resource(*otlpdata.Resource) error { return nil }

func (ledgerVisitor) Scope(*otlpdata.Scope) error { return nil }

func (v ledgerVisitor) Span(s *otlpdata.Span) error {
	spans := v.traces[s.TraceID.String()]
	if spans == nil {
		spans = make(map[string]bool)
		v.traces[s.TraceID.String()] = spans
	}
	spans[s.SpanID.String()] = spans[s.SpanID.String()] || v.acked
	return nil
}

// Check asks the server for every trace and compares: what was acknowledged is there once, and nothing is there that was not sent.
func (l *Ledger) Check(t *testing.T, query string) (acked, found int) {
	t.Helper()
	for trace, spans := range l.traces {
		have := l.Fetch(t, query, trace)
		for id, n := range have {
			if _, sent := spans[id]; !sent || n != 1 {
				t.Errorf("trace %s: span %s is there %d times; sent: %v", trace, id, n, sent)
			}
			found++
		}
		for id, ok := range spans {
			if !ok {
				continue
			}
			if acked++; have[id] == 0 {
				t.Errorf("trace %s: span %s was acknowledged and is lost", trace, id)
			}
		}
		if t.Failed() {
			return acked, found
		}
	}
	return acked, found
}

// Fetch returns how often each span of a trace is in the answer.
func (l *Ledger) Fetch(t *testing.T, query, trace string) map[string]int {
	t.Helper()
	resp, err := http.Get(query + "/api/traces/" + trace)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return nil
	}
	var answer struct {
		Data []struct {
			Spans []struct {
				SpanID string `json:"spanID"`
			} `json:"spans"`
		} `json:"data"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET /api/traces/%s: %s, %v", trace, resp.Status, err)
	}
	have := make(map[string]int)
	for _, tr := range answer.Data {
		for _, s := range tr.Spans {
			have[s.SpanID]++
		}
	}
	return have
}

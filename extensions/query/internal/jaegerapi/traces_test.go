package jaegerapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

func TestLargeTraceIsTruncated(t *testing.T) {
	td := ptrace.NewTraces()
	ss := querytest.AddService(td, "svc")
	for i := range 20 {
		querytest.AddSpan(ss, pcommon.TraceID{15: 1}, byte(i+1), 0, "op", time.Duration(i))
	}
	store := querytest.NewStore(td)
	h := api(t, store, func(o *core.Options) { o.Limits.TraceSize = 7 })
	for _, query := range []string{"traceID=1", "service=svc"} {
		a := search200(t, h, query)
		if len(a.Data) != 1 || len(a.Data[0].Spans) != 7 ||
			!strings.Contains(string(a.Data[0].Spans[0]), "trace has more than 7 spans, showing first 7 spans only") {
			t.Errorf("%s: %.300v", query, a)
		}
	}
	if store.Read != 8 {
		t.Errorf("%d pieces of one span were read to show 7 spans", store.Read)
	}
}

// pieces notes how long the parts are in which a response is written.
type pieces struct {
	*httptest.ResponseRecorder
	longest int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.longest = max(p.longest, len(b))
	return p.ResponseRecorder.Write(b)
}

// A trace is sent while it is encoded, so that what is held of the response does not grow with the
// trace.
func TestLargeTraceIsSentInParts(t *testing.T) {
	td := ptrace.NewTraces()
	ss := querytest.AddService(td, "svc")
	const spans = 900
	for i := range spans {
		s := querytest.AddSpan(ss, pcommon.TraceID{15: 1}, byte(i), byte(i>>8), "op", time.Duration(i))
		s.Attributes().PutStr("k", strings.Repeat("x", 1000))
	}
	h := api(t, querytest.NewStore(td))
	for _, path := range []string{"/api/traces/1", "/api/traces/1?raw=true", "/api/traces?service=svc"} {
		w := &pieces{ResponseRecorder: httptest.NewRecorder()}
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		var a tracesAnswer
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || len(a.Data) != 1 || len(a.Data[0].Spans) != spans {
			t.Fatalf("%s: %v, %.200s", path, err, w.Body)
		}
		if w.longest > httpapi.FlushSize+2000 || w.Body.Len() < 3*httpapi.FlushSize {
			t.Errorf("%s: %d bytes were written in parts of up to %d", path, w.Body.Len(), w.longest)
		}
	}
}

package uiapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const outlineTarget = "/api/ui/v1/outline/1"

// poll asks for the outline of trace 1 with a tag that the client has, or "".
func poll(t *testing.T, h http.Handler, header, target string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	if header != "" {
		r.Header.Set("If-None-Match", header)
	}
	return querytest.Record(h, r)
}

// countingStore counts how often traces are read.
type countingStore struct {
	core.Store
	reads int
}

// Outline implements tracestore.Reader.
func (s *countingStore) Outline(
	ctx context.Context, tenant string, id otlpdata.TraceID, limit int, hold func(int, int) error, take func([]tracestore.SummarySpan) error,
) error {
	s.reads++
	return s.Store.Outline(ctx, tenant, id, limit, hold, take)
}

// unversioned is a store that knows no versions of traces.
type unversioned struct{ core.Store }

func (unversioned) TraceVersion(context.Context, string, otlpdata.TraceID) (v tracestore.TraceVersion, _ error) {
	return v, tracestore.ErrUnsupported
}

// A client that polls a trace gets 304 until the trace changes or is expected to grow no more. A
// store that knows versions does not read the trace for this.
func TestPolledOutline(t *testing.T) {
	for _, versions := range []bool{true, false} {
		memory := querytest.Memory(t)
		add := func(id byte) {
			td := ptrace.NewTraces()
			s := querytest.AddSpan(querytest.AddService(td, "web"), pcommon.TraceID{15: 1}, id, 0, "op", 0)
			s.SetStartTimestamp(pcommon.NewTimestampFromTime(querytest.Noon.Add(-time.Second)))
			s.SetEndTimestamp(pcommon.NewTimestampFromTime(querytest.Noon))
			if err := memory.Consume(t.Context(), otlpdata.FromTraces(td, otlpdata.Meta{})); err != nil {
				t.Fatal(err)
			}
		}
		now := querytest.Noon.Add(time.Second)
		counting := &countingStore{Store: memory}
		store := core.Store(counting)
		if !versions {
			store = unversioned{memory}
		}
		h := api(t, store, func(o *core.Options) { o.Now = func() time.Time { return now } })
		changed := func(header, target string, growing bool) (tag string) {
			t.Helper()
			w := poll(t, h, header, target)
			tag = w.Header().Get("ETag")
			if w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"growing":true`) != growing || tag == "" || tag == header {
				t.Fatalf("versions %t: %d, ETag %s, %s", versions, w.Code, tag, w.Body)
			}
			return tag
		}
		unchanged := func(header, target string) {
			t.Helper()
			reads := counting.reads
			w := poll(t, h, header, target)
			if w.Code != http.StatusNotModified || w.Body.Len() > 0 || counting.reads > reads {
				t.Errorf("versions %t, %s %s: %d %s, %d reads", versions, header, target, w.Code, w.Body, counting.reads-reads)
			}
		}
		add(1)
		first := changed("", outlineTarget, true)
		unchanged(first, outlineTarget)
		unchanged(`"x", `+first, outlineTarget)
		unchanged("", outlineTarget+"?since="+strings.Trim(first, `W/"`))
		changed("", outlineTarget+"?since=", true)
		changed("nonsense", outlineTarget+"?since=1-2-3", true)
		add(2)
		second := changed(first, outlineTarget, true)
		unchanged(second, outlineTarget)
		now = now.Add(growingFor)
		last := changed(second, outlineTarget, false)
		now = now.Add(time.Hour)
		unchanged(last, outlineTarget)
	}
}

// Damage gives a response no tag, because it may be repaired.
func TestDamagedOutlineHasNoTag(t *testing.T) {
	s := querytest.NewStore(querytest.Shop())
	s.Damage = "a part is gone"
	w := poll(t, api(t, s), "", outlineTarget)
	if w.Code != http.StatusOK || w.Header().Get("ETag") != "" || !strings.Contains(w.Body.String(), "a part is gone") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

func FuzzKnownVersion(f *testing.F) {
	f.Add(`W/"0000000000000001-0"`, "1-2")
	f.Add(`"a", W/"b-9223372036854775808"`, "W/")
	f.Fuzz(func(t *testing.T, header, since string) {
		r := httptest.NewRequest(http.MethodGet, outlineTarget, nil)
		r.Header.Set("If-None-Match", header)
		r.URL.RawQuery = "since=" + since
		v := outlineVersion{number: 0xabc}
		if v.isKnownTo(r, querytest.Noon) && !strings.Contains(header+since, "abc-") {
			t.Errorf("%q %q is known", header, since)
		}
	})
}

func FuzzSpanIDs(f *testing.F) {
	f.Add("0000000000000001,00000000000000Ff")
	f.Add(",")
	f.Fuzz(func(t *testing.T, text string) {
		ids, err := spanIDsParam(url.Values{"ids": {text}}, "ids")
		var again []string
		for _, id := range ids {
			again = append(again, id.String())
		}
		if err == nil && (len(ids) > maxSpanIDs || strings.Join(again, ",") != strings.ToLower(text)) {
			t.Errorf("%q: %v", text, ids)
		}
	})
}

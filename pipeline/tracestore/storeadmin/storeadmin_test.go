package storeadmin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storeadmin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a store that records the last deletion.
type fake struct {
	tenant string
	d      tracestore.Deletion
	calls  int
	err    error
}

func (f *fake) Delete(_ context.Context, tenant string, d tracestore.Deletion) (tracestore.Deleted, error) {
	f.tenant, f.d = tenant, d
	f.calls++
	return tracestore.Deleted{Spans: 42}, f.err
}

func post(store tracestore.Deleter, contentType, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/delete", strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	storeadmin.Handler(store).ServeHTTP(w, r)
	return w
}

func TestDelete(t *testing.T) {
	from, to := time.Date(2026, 11, 21, 17, 0, 0, 5, time.UTC), time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)
	for body, want := range map[string]tracestore.Deletion{
		`{"tenant":"t","traces":["4bf92f3577b34da6a3ce929d0e0e4736","AB"]}`: {Traces: []otlpdata.TraceID{
			{0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36}, {15: 0xab}}},
		`{"tenant":"t","service":"cart","traces":null,"from":null}`:                                           {Service: "cart"},
		`{"tenant":"t","service":"cart","from":"2026-11-21T17:00:00.000000005Z","to":"2026-11-21T18:00:00Z"}`: {Service: "cart", From: from, To: to},
		`{"tenant":"t","service":"cart","dry_run":true}`:                                                      {Service: "cart", DryRun: true},
		`{"tenant":"t","to":"2026-11-21T18:00:00Z"} `:                                                         {To: to},
	} {
		store := &fake{}
		w := post(store, "application/json; charset=utf-8", body)
		if w.Code != http.StatusOK || w.Body.String() != `{"spans":42}`+"\n" || store.tenant != "t" || !reflect.DeepEqual(store.d, want) {
			t.Errorf("%s: %d %s, store was called with %+v of tenant %q", body, w.Code, w.Body, store.d, store.tenant)
		}
	}
}

func TestErrors(t *testing.T) {
	const service = `{"service":"cart"}`
	many := `{"traces":["` + strings.Repeat(`1","`, tracestore.MaxDeletedTraces) + `1"]}`
	f := func(contentType, body string, err error, code int, text string) {
		t.Helper()
		store := &fake{err: err}
		w := post(store, contentType, body)
		if w.Code != code || !strings.Contains(w.Body.String(), text) || (store.calls > 0) != (err != nil) {
			t.Errorf("%.60s: %d %s, want %d with %q; %d calls", body, w.Code, w.Body, code, text, store.calls)
		}
	}
	const asJSON = "application/json"
	f("text/plain", service, nil, 415, "application/json")
	f("", service, nil, 415, "application/json")
	f(asJSON, "", nil, 400, "EOF")
	f(asJSON, "{}", nil, 400, "specify traces, a service or a time range")
	f(asJSON, `{"service":"cart","form":"2026-11-21T17:00:00Z"}`, nil, 400, "form")
	f(asJSON, service+service, nil, 400, "trailing data")
	f(asJSON, `{"traces":["xyz"]}`, nil, 400, "invalid trace id")
	f(asJSON, `{"traces":[""]}`, nil, 400, "invalid trace id")
	f(asJSON, `{"traces":["`+strings.Repeat("0", 33)+`"]}`, nil, 400, "invalid trace id")
	f(asJSON, `{"traces":["1"],"service":"cart"}`, nil, 400, "cannot be combined")
	f(asJSON, `{"traces":[],"to":"2026-11-21T18:00:00Z"}`, nil, 400, "empty list of traces")
	f(asJSON, `{"service":"","to":"2026-11-21T18:00:00Z"}`, nil, 400, "empty service")
	f(asJSON, `{"from":"yesterday"}`, nil, 400, "yesterday")
	f(asJSON, `{"from":"2026-11-21T18:00:00Z","to":"2026-11-21T17:00:00Z"}`, nil, 400, "empty time range")
	f(asJSON, many, nil, 400, "10001 traces")
	f(asJSON, `{"service":"`+strings.Repeat("x", 1<<20)+`"}`, nil, 413, "too large")
	f(asJSON, service, pipeline.Permanent(tracestore.ErrNotAllowed), 403, "allow_delete: true")
	f(asJSON, service, pipeline.Permanent(fmt.Errorf("%w: because", tracestore.ErrBadDeletion)), 400, "because")
	f(asJSON, service, errors.New("disk failed"), 503, "disk failed")
	f(asJSON, service, pipeline.Overloaded(errors.New("too many requests"), time.Minute), 429, "too many requests")
	overloaded := &fake{err: pipeline.Overloaded(errors.New("too many requests"), time.Minute)}
	if w := post(overloaded, asJSON, service); w.Header().Get("Retry-After") != "60" {
		t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
	}
}

func TestOnlyPOST(t *testing.T) {
	for method, code := range map[string]int{http.MethodGet: 405, http.MethodDelete: 405} {
		w := httptest.NewRecorder()
		storeadmin.Handler(&fake{}).ServeHTTP(w, httptest.NewRequest(method, "/delete", nil))
		if w.Code != code {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
}

// TestRejectsWebPages checks that a web page cannot delete spans, even from the same host name.
func TestRejectsWebPages(t *testing.T) {
	store := &fake{}
	r := httptest.NewRequest(http.MethodPost, "/delete", strings.NewReader(`{"service":"cart"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", "http://"+r.Host)
	w := httptest.NewRecorder()
	storeadmin.Handler(store).ServeHTTP(w, r)
	if w.Code != http.StatusForbidden || store.calls > 0 || !strings.Contains(w.Body.String(), "web pages") {
		t.Errorf("%d %s, %d calls", w.Code, w.Body, store.calls)
	}
}

// FuzzDelete checks that the store gets only valid deletions.
func FuzzDelete(f *testing.F) {
	for _, body := range []string{`{"traces":["4bf92f3577b34da6a3ce929d0e0e4736","AB"]}`, `{"tenant":"t","service":"cart","from":null}`,
		`{"to":"2026-11-21T18:00:00Z"}`, `{"from":"0000-01-01T00:00:00Z","to":"9999-12-31T23:59:59Z"}`, `{"service":1}`, `[`, `{}{}`} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		store := &fake{}
		w := post(store, "application/json", body)
		if store.calls > 0 && (w.Code != http.StatusOK || store.d.Check() != nil) || store.calls == 0 && w.Code < http.StatusBadRequest {
			t.Errorf("%d %s, store was called with %+v", w.Code, w.Body, store.d)
		}
	})
}

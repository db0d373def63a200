package query

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

func TestServerErrorsAreLogged(t *testing.T) {
	logCore, logs := observer.New(zapcore.ErrorLevel)
	store := querytest.NewStore(querytest.Shop())
	h, _ := api(t, store, func(o *core.Options) { o.Logger = zap.New(logCore) })
	querytest.Ask(t, h, http.MethodGet, "/api/traces/77")
	querytest.Ask(t, h, http.MethodGet, "/api/traces?limit=x")
	if logs.Len() > 0 {
		t.Errorf("errors of the client are logged: %v", logs.All())
	}
	store.Fail = querytest.ErrStore
	querytest.Ask(t, h, http.MethodGet, "/api/traces/1")
	entries := logs.FilterMessage("HTTP handler, Internal Server Error").All()
	if len(entries) != 1 || entries[0].ContextMap()["error"] != querytest.ErrStore.Error() {
		t.Errorf("logged %v", logs.All())
	}
}

// manyTracesPaths are requests for the three traces of querytest.Many(3, ...).
func manyTracesPaths() []string {
	return []string{"/api/traces?service=svc", "/api/traces?traceID=1&traceID=2&traceID=3", "/api/v3/traces?" + wholeDay}
}

// wholeDay are the parameters of a search for all traces of querytest.
const wholeDay = "query.startTimeMin=2024-05-01T00:00:00Z&query.startTimeMax=2024-05-02T00:00:00Z"

func TestStoreFails(t *testing.T) {
	for _, path := range append(manyTracesPaths(), "/api/v3/trace-summaries?"+wholeDay) {
		store := querytest.NewStore(querytest.Many(3, querytest.Unchanged))
		store.Fail, store.FailAt = querytest.ErrStore, 2
		h, _ := api(t, store)
		if w := querytest.Ask(t, h, http.MethodGet, path); w.Code != http.StatusInternalServerError ||
			!strings.Contains(w.Body.String(), "disk on fire") {
			t.Errorf("%s: %d %.200s", path, w.Code, w.Body)
		}
	}
}

// TestDamagedTrace: the response for a partly damaged trace has the other parts and a
// warning. Only if nothing of it can be read, the response is an error, which says why.
func TestDamagedTrace(t *testing.T) {
	const damage = "a part of seg/1 with 4096 spans cannot be read"
	logCore, logs := observer.New(zapcore.ErrorLevel)
	store := querytest.NewStore(querytest.Many(3, querytest.Unchanged))
	store.Damage = damage
	h, _ := api(t, store, func(o *core.Options) { o.Logger = zap.New(logCore) })
	const warning = `"errors":[{"msg":"result is incomplete: ` + damage + `"`
	const ofTrace = warning + `,"traceID":"0000000000000001"}`
	for path, want := range map[string]string{
		"/api/traces/1":                                   ofTrace + "]",
		"/api/traces?traceID=1&traceID=77":                ofTrace + `,{"msg":"trace is not in the part`,
		"/api/v3/traces/1":                                `"warnings":["result is incomplete: ` + damage + `"]`,
		"/tempo/api/v2/traces/1":                          `"status":"PARTIAL","message":"result is incomplete: ` + damage + `"`,
		"/tempo/api/traces/1":                             `"batches":[{`,
		"/api/ui/v1/outline/1":                            warning + "}]",
		"/api/ui/v1/outline/1/find?q=op":                  warning + "}]",
		"/api/ui/v1/outline/1/spans?ids=0000000000000001": warning + "}]",
	} {
		w := querytest.Ask(t, h, http.MethodGet, path)
		if text := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(text, want) || !strings.Contains(text, "span") {
			t.Errorf("%s: %d %.900s\nwant %s", path, w.Code, text, want)
		}
		if got := w.Header().Get("Tracing-Warning"); strings.HasPrefix(path, "/tempo") && !strings.HasSuffix(got, damage) {
			t.Errorf("%s: the header says %q", path, got)
		}
		id := strings.LastIndex(path, "/1")
		if id < 0 {
			continue
		}
		w = querytest.Ask(t, h, http.MethodGet, path[:id]+"/77")
		text := w.Body.String()
		if w.Code != http.StatusNotFound || !strings.Contains(text, core.ErrTraceDamaged.Error()+": "+damage) {
			t.Errorf("a trace that cannot be read, %s: %d %.300s", path, w.Code, text)
		}
	}
	if logs.Len() > 0 {
		t.Errorf("damage, which the store logs, is logged again: %v", logs.All())
	}
}

// If the store fails after a part of the response was sent, the connection is closed within the
// answer.
func TestStoreFailsMidAnswer(t *testing.T) {
	logCore, logs := observer.New(zapcore.ErrorLevel)
	for _, path := range manyTracesPaths() {
		for _, coding := range []string{"", "gzip"} {
			store := querytest.NewStore(querytest.Big())
			store.Fail, store.FailAt = querytest.ErrStore, 2
			routes, _ := api(t, store, func(o *core.Options) { o.Logger = zap.New(logCore) })
			srv := httptest.NewServer(routes)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept-Encoding", coding)
			res, err := srv.Client().Do(r)
			if err == nil {
				_, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
			if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
				t.Errorf("%s: %v", path, err)
			}
			srv.Close()
			if n := logs.TakeAll(); len(n) != 1 {
				t.Errorf("%s: logged %v", path, n)
			}
		}
	}
}

func TestSlowStore(t *testing.T) {
	f := func(path string, failAt, status int, want string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			store := querytest.NewStore(querytest.Many(3, querytest.Unchanged))
			store.Hang, store.FailAt = true, failAt
			h, _ := api(t, store)
			w := querytest.Ask(t, h, http.MethodGet, path)
			if w.Code != status || !strings.HasSuffix(strings.TrimSpace(w.Body.String()), want) {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		})
	}
	const text = `"the store did not finish within query_timeout (1m0s); narrow the query"}]}`
	const partly = `"errors":[{"code":504,"msg":"result is incomplete: the store did not finish within query_timeout (1m0s); narrow the query"}]}`
	f("/api/services", 0, http.StatusGatewayTimeout, text)
	f("/api/operations?service=x", 0, http.StatusGatewayTimeout, text)
	f("/api/services/x/operations", 0, http.StatusGatewayTimeout, text)
	f("/api/traces/1", 0, http.StatusGatewayTimeout, text)
	f("/api/traces?service=svc", 0, http.StatusGatewayTimeout, text)
	f("/api/traces?service=svc", 2, http.StatusOK, partly)
	f("/api/traces?traceID=1&traceID=2&traceID=3", 2, http.StatusOK, partly)
	const partlyV3 = `],"warnings":["result is incomplete: the store did not finish within query_timeout (1m0s); narrow the query"]}`
	f("/api/v3/traces?"+wholeDay, 2, http.StatusOK, strings.Replace(partlyV3, "]", "]}", 1))
	f("/api/v3/trace-summaries?"+wholeDay, 2, http.StatusOK, partlyV3)
	const textV3 = `{"error":{"httpCode":504,"message":"the store did not finish within query_timeout (1m0s); narrow the query"}}`
	f("/api/v3/traces?"+wholeDay, 0, http.StatusGatewayTimeout, textV3)
	f("/api/v3/trace-summaries?"+wholeDay, 0, http.StatusGatewayTimeout, textV3)
}

// TestSlowRemoteStore checks that a response does not name query_timeout if a store in another
// process has ended the query before.
func TestSlowRemoteStore(t *testing.T) {
	store := querytest.NewStore(querytest.Many(3, querytest.Unchanged))
	store.Fail = errors.Join(context.DeadlineExceeded, status.Error(codes.DeadlineExceeded, "the other store is slow"))
	h, _ := api(t, store)
	for _, path := range append(manyTracesPaths(), "/api/services") {
		w := querytest.Ask(t, h, http.MethodGet, path)
		if text := w.Body.String(); w.Code != http.StatusGatewayTimeout || !strings.Contains(text, "the other store is slow") ||
			strings.Contains(text, "query_timeout") {
			t.Errorf("%s: %d %s", path, w.Code, text)
		}
	}
}

// failingClient fails all writes.
type failingClient struct{ *httptest.ResponseRecorder }

func (failingClient) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestClientDisconnects(t *testing.T) {
	logCore, logs := observer.New(zapcore.WarnLevel)
	h, reg := api(t, querytest.NewStore(querytest.Big()), func(o *core.Options) { o.Logger = zap.New(logCore) })
	for _, path := range []string{"/api/traces?service=svc", "/api/traces/1", "/api/services"} {
		h.ServeHTTP(failingClient{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, path, nil))
	}
	if logs.Len() > 0 {
		t.Errorf("logged %v", logs.All())
	}
	for name, n := range querytest.Counts(t, reg, "tracing_query_requests_total") {
		if strings.HasSuffix(name, "err") && n > 0 {
			t.Errorf("counted as an error: %s", name)
		}
	}
}

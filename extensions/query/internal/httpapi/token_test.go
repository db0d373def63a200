package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tracing-backend/tracing/pipeline/client"
)

func TestPassToken(t *testing.T) {
	core, logs := observer.New(zapcore.WarnLevel)
	got := ""
	h := PassToken(zap.New(core), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = client.BearerToken(r.Context()) }))
	f := func(want string, warnings int, headers ...string) {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		if got != want || logs.Len() != warnings {
			t.Errorf("%v: token %q, %d warnings", headers, got, logs.Len())
		}
		logs.TakeAll()
	}
	f("", 0)
	f("abc", 0, "Authorization", "Bearer abc")
	f("abc", 0, "Authorization", "abc")
	f("", 0, "Authorization", "Basic abc")
	f("", 0, "Authorization", "bearer abc")
	f("", 1, "Authorization", "Bearer a b")
	f("abc", 0, "X-Forwarded-Access-Token", "abc")
	f("abc", 0, "X-Forwarded-Access-Token", "no", "Authorization", "Bearer abc")
}

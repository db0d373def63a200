package server_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// Public requests are not checked; the others are, and are counted if they are refused.
func TestPublicRequests(t *testing.T) {
	f := newFixture(t, 1<<20)
	cfg := httpConfig()
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	auth := server.DefaultAuthConfig()
	auth.BearerTokensFile = tokens
	cfg.Auth = pipeline.Present(auth)
	cfg.Tenancy = pipeline.Present(server.TenancyConfig{Enabled: true, Header: "x-tenant"})
	s, err := server.NewHTTP(f.set, "http", cfg, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Tenant", server.Tenant(r.Context()))
	}))
	if err != nil {
		t.Fatal(err)
	}
	s.SetPublic(func(r *http.Request) bool { return r.URL.Path == "/page" })
	f.run(s)
	for _, c := range []struct {
		path, token, tenant string
		status              int
		want                string // tenant that the handler sees
	}{
		{"/page", "", "", 200, ""},
		{"/page", "wrong", "", 200, ""},
		{"/page", "token", "a", 200, ""},
		{"/data", "token", "a", 200, "a"},
		{"/data", "token", "", 401, ""},
		{"/data", "wrong", "a", 401, ""},
		{"/page/", "", "", 401, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		r.Header.Set("Authorization", "Bearer "+c.token)
		if c.tenant != "" {
			r.Header.Set("X-Tenant", c.tenant)
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code != c.status || w.Header().Get("Tenant") != c.want {
			t.Errorf("%+v: %d, tenant %q", c, w.Code, w.Header().Get("Tenant"))
		}
	}
	if got := f.refused(""); got != 3 {
		t.Errorf("%v requests counted as refused, want 3", got)
	}
}

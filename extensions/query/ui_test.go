package query

import (
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/crypto/bcrypt"

	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// ourPage is the index page of a build of this UI.
const ourPage = `<!doctype html><base href="/"><script type="application/json" id="boot">{}</script>`

// listener returns the complete handler of the HTTP listener with a configuration.
func listener(t *testing.T, change func(*Config)) http.Handler {
	t.Helper()
	return documented(t, nil, change)
}

// documented is like listener, with files of the repository.
func documented(t *testing.T, documents fs.FS, change func(*Config)) http.Handler {
	t.Helper()
	c := defaults()
	c.HTTP.Endpoint = "localhost:0"
	c.Storage = pipeline.BoundRef[Store](querytest.NewStore(querytest.Shop()))
	change(&c)
	if err := c.UI.Validate(); err != nil {
		t.Fatal(err)
	}
	set := pipeline.Settings{
		ID: pipeline.ID{Type: "query"}, Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(), Env: pipeline.SystemEnv(),
		Budget: pipeline.NewBudget(1 << 30), QueryMemory: pipeline.NewQueryBudget(1 << 30), Report: func(error) {},
	}
	q, err := newQuery(set, c, documents)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return q.listeners["http"].(*server.HTTP).Handler()
}

// withPasswords requires the password of user ann, or a token, and a tenant.
func withPasswords(t *testing.T, c *Config) {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	users, tokens := filepath.Join(t.TempDir(), "users"), filepath.Join(t.TempDir(), "tokens")
	writeFile(t, users, "ann:"+string(hash)+"\n")
	writeFile(t, tokens, "token\n")
	auth := server.DefaultAuthConfig()
	auth.HtpasswdFile, auth.BearerTokensFile = users, tokens
	c.HTTP.Auth = pipeline.Present(auth)
	c.HTTP.Tenancy = pipeline.Present(server.TenancyConfig{Enabled: true, Header: "X-Org"})
}

// request asks the handler, with headers.
func request(h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = "localhost"
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// The page and its files need no credentials; everything else does.
func TestOnlyThePageIsPublic(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "index.html"), ourPage)
	writeFile(t, filepath.Join(dir, "assets", "main.js"), "let x")
	for _, base := range []string{"", "/base"} {
		h := listener(t, func(c *Config) {
			withPasswords(t, c)
			c.UI.Path, c.BasePath = dir, base+"/"
		})
		page := request(h, http.MethodGet, base+"/search", "Accept", "text/html")
		if want := `id="boot">{"version":{"gitCommit":"","gitVersion":"","buildDate":""},"auth":["basic","bearer"],"tenantHeader":"X-Org"}<`; page.Code !=
			http.StatusOK || !strings.Contains(page.Body.String(), want) {
			t.Errorf("page: %d %s", page.Code, page.Body)
		}
		for path, status := range map[string]int{
			"/": 200, "/assets/main.js": 200, "/none": 404,
			"/api/services": 401, "/api/ui/v1/config": 401, "/api/none": 401, "/api/": 401, "/tempo/api/echo": 401, "/tempo/x": 401,
			"/%61pi/services": 401, "/api%2Fservices": 404, "/./api/services": 401, "//api/services": 401, "/assets/../api/services": 401,
		} {
			w := request(h, http.MethodGet, base+path)
			if w.Code != status || strings.Contains(w.Body.String(), "web") {
				t.Errorf("%s%s: %d %s", base, path, w.Code, w.Body)
			}
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodConnect, http.MethodOptions, "X"} {
			if w := request(h, method, base+"/"); w.Code != http.StatusUnauthorized {
				t.Errorf("%s: %d", method, w.Code)
			}
		}
		// Wrong credentials do not matter where none are needed.
		if w := request(h, http.MethodGet, base+"/", "Authorization", "Bearer x"); w.Code != http.StatusOK {
			t.Errorf("page with a wrong token: %d", w.Code)
		}
		if w := request(h, http.MethodGet, base+"/api/services", "Authorization", "Bearer token", "X-Org", "a"); w.Code != http.StatusOK {
			t.Errorf("API with a token: %d %s", w.Code, w.Body)
		}
	}
	h := listener(t, func(c *Config) {
		withPasswords(t, c)
		c.BasePath = "/base"
	})
	if w := request(h, http.MethodGet, "/"); w.Code != http.StatusUnauthorized {
		t.Errorf("outside the base path: %d", w.Code)
	}
}

// The browser must not open its own dialog for requests of the page.
func TestChallenge(t *testing.T) {
	h := listener(t, func(c *Config) { withPasswords(t, c) })
	for requestedWith, want := range map[string]string{"": "Basic", "XMLHttpRequest": "X-Basic", "com.example.app": "Basic"} {
		w := request(h, http.MethodGet, "/api/services", "X-Requested-With", requestedWith)
		scheme, _, _ := strings.Cut(w.Header().Get("WWW-Authenticate"), " ")
		if w.Code != http.StatusUnauthorized || scheme != want {
			t.Errorf("%q: %d %q", requestedWith, w.Code, scheme)
		}
	}
}

// Requests of the page count as attempts to guess a password.
func TestPasswordLimitsApplyToThePage(t *testing.T) {
	h := listener(t, func(c *Config) { withPasswords(t, c) })
	for range 1000 {
		w := request(h, http.MethodGet, "/api/services", "X-Requested-With", "XMLHttpRequest", "Authorization", "Basic YW5uOngK")
		if w.Code == http.StatusTooManyRequests {
			if page := request(h, http.MethodGet, "/"); page.Code != http.StatusOK {
				t.Errorf("page: %d", page.Code)
			}
			return
		}
		if w.Code != http.StatusUnauthorized {
			t.Fatalf("status %d", w.Code)
		}
	}
	t.Error("1000 wrong passwords without a delay")
}

// A Jaeger UI has no form for credentials, so its pages need them.
func TestJaegerUIIsNotPublic(t *testing.T) {
	h := listener(t, func(c *Config) {
		withPasswords(t, c)
		c.UI.Path = uiFolder(t)
	})
	for _, path := range []string{"/", "/static/main.js", "/search"} {
		if w := request(h, http.MethodGet, path, "Accept", "text/html"); w.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// Without ui.path, the page in the program is served.
func TestEmbeddedUI(t *testing.T) {
	h := listener(t, func(c *Config) { c.UI.FrameAncestors = []string{"https://*.example.com"} })
	w := request(h, http.MethodGet, "/")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `id="boot">{"version"`) ||
		!strings.HasSuffix(w.Header().Get("Content-Security-Policy"), " 'self' https://*.example.com") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestConfigFileNeedsJaegerUI(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "index.html"), ourPage)
	writeFile(t, filepath.Join(dir, "ui.json"), "{}")
	c := Config{UI: UIConfig{Path: dir, ConfigFile: filepath.Join(dir, "ui.json")}}
	u := newUI(pipeline.Settings{Logger: zap.NewNop(), Env: pipeline.SystemEnv()}, &c, "", false, hasMetrics)
	if err := u.open(); err == nil || !strings.Contains(err.Error(), "config_file is for the Jaeger UI") {
		t.Errorf("error %v", err)
	}
}

func TestFrameAncestors(t *testing.T) {
	for _, good := range []string{"*", "https://a.example", "http://localhost:3000", "https://*.example.com", "https://[::1]:1"} {
		if err := (&UIConfig{FrameAncestors: []string{good}}).Validate(); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "a.example", "https://", "https://*", "https://*.", "https://a/b", "https://a b", "https://a; script-src *",
		"https://u@a", "ftp://a", "javascript:x", "'none'", "https://a?x", "https://a*b", "https://*.*.a"} {
		if err := (&UIConfig{FrameAncestors: []string{bad}}).Validate(); err == nil || !strings.Contains(err.Error(), "is not an origin") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// The documentation needs no credentials and no tenant, below any base path. Without its files, the
// UI answers.
func TestDocumentation(t *testing.T) {
	documents := fstest.MapFS{
		"docs/README.md":          {Data: []byte("# Documentation\n")},
		"ui/src/shell/tokens.css": {Data: []byte(":root {}\n")},
		"ui/public/favicon.svg":   {Data: []byte("<svg/>")},
	}
	h := documented(t, documents, func(c *Config) {
		c.BasePath = "/base"
		withPasswords(t, c)
	})
	for path, want := range map[string]int{
		"/base/docs": 301, "/base/docs/": 200, "/base/docs/index.html": 200, "/base/docs/none.html": 404,
		"/base/api/services": 401, "/docs/": 401,
	} {
		if w := request(h, http.MethodGet, path); w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	if w := request(documented(t, nil, func(*Config) {}), http.MethodGet, "/docs/"); w.Code != http.StatusNotFound {
		t.Errorf("without documents: %d", w.Code)
	}
}

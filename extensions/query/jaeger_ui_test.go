package query

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/live"
	"github.com/tracing-backend/tracing/pipeline"
)

// indexPage has the placeholders of both generations of the Jaeger UI.
const indexPage = `<!doctype html>
<base href="/" data-x>
<script>
function getJaegerUiConfig() {
  const DEFAULT_CONFIG = null;
  const JAEGER_CONFIG = DEFAULT_CONFIG;
  return JAEGER_CONFIG;
}
  // JAEGER_CONFIG_JS
  // the line above may be replaced by a script
const JAEGER_STORAGE_CAPABILITIES = DEFAULT_STORAGE_CAPABILITIES;
const JAEGER_BACKEND_CAPABILITIES=DEFAULT_BACKEND_CAPABILITIES;
const JAEGER_VERSION =  DEFAULT_VERSION;
</script>
`

// uiFolder returns a folder with a build of the UI.
func uiFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "index.html"), indexPage)
	writeFile(t, filepath.Join(dir, "secret.txt"), "not below static")
	writeFile(t, filepath.Join(dir, "static", "main.js"), "let x = 1;\n")
	outside := filepath.Join(t.TempDir(), "passwd")
	writeFile(t, outside, "root")
	if err := os.Symlink(outside, filepath.Join(dir, "static", "link")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func hasMetrics(context.Context) bool { return false }

// pages returns the routes with a UI, and the clock of the UI.
func pages(t *testing.T, c UIConfig, base string, logger *zap.Logger) (http.Handler, *time.Time) {
	t.Helper()
	now := querytest.Noon
	u := newUI(pipeline.Settings{Logger: logger, Env: pipeline.Env{Now: func() time.Time { return now }}}, &Config{UI: c}, base,
		true, hasMetrics)
	u.jaeger.version = httpapi.Version{Commit: "abc", Version: "v1", Date: "today"}
	if err := u.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.close(); err != nil {
			t.Error(err)
		}
	})
	b, _ := querytest.NewBackend(t, querytest.NewStore(querytest.Shop()))
	return httpapi.Compress(newRoutes(b, u, uiapi.Options{Tail: live.DefaultConfig()}, live.New(b, live.DefaultConfig()))), &now
}

func TestIndexPage(t *testing.T) {
	settings := filepath.Join(t.TempDir(), "ui.json")
	writeFile(t, settings, `{"menu": [{"label": "</script>$1"}]}`)
	h, _ := pages(t, UIConfig{Path: uiFolder(t), ConfigFile: settings}, "/tracing", zap.NewNop())
	for _, path := range []string{"/tracing/", "/tracing/search", "/tracing/trace/1...2", "/tracing/dependencies", "/tracing/index.html",
		"/tracing/secret.txt"} {
		w := querytest.Ask(t, h, http.MethodGet, path)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" ||
			w.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		const able = `{"archiveStorage":true,"metricsStorage":false,"searchWithoutServiceName":true,"aiAssistant":false};`
		for _, want := range []string{`<base href="/tracing/" data-x>`,
			`const JAEGER_CONFIG = {"menu":[{"label":"\u003c/script\u003e$1"}]};`,
			"const JAEGER_STORAGE_CAPABILITIES = " + able, "const JAEGER_BACKEND_CAPABILITIES = " + able,
			`const JAEGER_VERSION = {"gitCommit":"abc","gitVersion":"v1","buildDate":"today"};`, "// JAEGER_CONFIG_JS\n"} {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: no %s in %s", path, want, w.Body)
			}
		}
	}
	for path, status := range map[string]int{"/": 404, "/search": 404, "/tracing": 307, "/tracing/api/x": 404,
		"/tracing/api/services": 200} {
		if w := querytest.Ask(t, h, http.MethodGet, path); w.Code != status {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestIndexPageWithScript(t *testing.T) {
	settings := filepath.Join(t.TempDir(), "ui.js")
	const script = "function UIConfig() { return {$0: '<\\/Script>'}; }"
	writeFile(t, settings, strings.Replace(script, `<\/`, "</", 1))
	h, _ := pages(t, UIConfig{Path: uiFolder(t), ConfigFile: settings}, "", zap.NewNop())
	page := querytest.Ask(t, h, http.MethodGet, "/").Body.String()
	if !strings.Contains(page, "}\n"+script+"\nconst") || strings.Contains(page, "may be replaced") ||
		!strings.Contains(page, "JAEGER_CONFIG = DEFAULT_CONFIG;") {
		t.Errorf("got %s", page)
	}
}

func TestStaticFiles(t *testing.T) {
	h, _ := pages(t, UIConfig{Path: uiFolder(t)}, "/b", zap.NewNop())
	w := querytest.Ask(t, h, http.MethodGet, "/b/static/main.js")
	if w.Code != http.StatusOK || w.Body.String() != "let x = 1;\n" || w.Header().Get("Cache-Control") != "public, max-age=3600" ||
		!strings.HasPrefix(w.Header().Get("Content-Type"), "text/javascript") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	for _, path := range []string{"/b/static/", "/b/static/none.js", "/b/static/link", "/b/static/%2e%2e/secret.txt",
		"/b/static/..%2fsecret.txt",
		"/b/static//main.js", "/b/static/main.js/", "/static/main.js", "/b/static/%00"} {
		if w := querytest.Ask(t, h, http.MethodGet, path); w.Code == http.StatusOK || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := querytest.Ask(t, h, http.MethodPost, "/b/static/main.js"); w.Code != http.StatusNotFound {
		t.Errorf("POST: %d", w.Code)
	}
}

// The page is reloaded when its files change, and kept when they become invalid.
func TestPageReloads(t *testing.T) {
	core, logs := observer.New(zapcore.WarnLevel)
	settings := filepath.Join(t.TempDir(), "ui.json")
	writeFile(t, settings, `{"a":1}`)
	h, now := pages(t, UIConfig{Path: uiFolder(t), ConfigFile: settings}, "", zap.New(core))
	f := func(after time.Duration, want string, warnings int) {
		t.Helper()
		*now = now.Add(after)
		if page := querytest.Ask(t, h, http.MethodGet, "/").Body.String(); !strings.Contains(page, "JAEGER_CONFIG = "+want) ||
			logs.Len() != warnings {
			t.Errorf("%d warnings, %s", logs.Len(), page)
		}
	}
	writeFile(t, settings, `{"a":2}`)
	f(uiReload-1, `{"a":1};`, 0)
	f(1, `{"a":2};`, 0)
	writeFile(t, settings, `[1]`)
	f(uiReload, `{"a":2};`, 1)
	f(1, `{"a":2};`, 1)
	if err := os.Remove(settings); err != nil {
		t.Fatal(err)
	}
	f(uiReload, `{"a":2};`, 2)
	writeFile(t, settings, `{}`)
	f(uiReload, `{};`, 2)
}

func TestInvalidUI(t *testing.T) {
	dir := t.TempDir()
	f := func(c UIConfig, want string) {
		t.Helper()
		u := newUI(pipeline.Settings{Logger: zap.NewNop(), Env: pipeline.SystemEnv()}, &Config{UI: c}, "", false, hasMetrics)
		if err := u.open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	f(UIConfig{Path: filepath.Join(dir, "none")}, "ui::path: ")
	f(UIConfig{Path: dir}, "cannot read the UI's index page")
	writeFile(t, filepath.Join(dir, "index.html"), strings.Repeat("x", maxPageBytes+1))
	f(UIConfig{Path: dir}, "longer than")
	folder := uiFolder(t)
	f(UIConfig{Path: folder, ConfigFile: filepath.Join(dir, "none.json")}, "cannot read UI config file")
	writeFile(t, filepath.Join(dir, "a.json"), "[]")
	f(UIConfig{Path: folder, ConfigFile: filepath.Join(dir, "a.json")}, "cannot parse UI config file")
	writeFile(t, filepath.Join(dir, "null.json"), "null")
	f(UIConfig{Path: folder, ConfigFile: filepath.Join(dir, "null.json")}, "cannot parse UI config file")
	writeFile(t, filepath.Join(dir, "a.js"), "function uiconfig() {}")
	f(UIConfig{Path: folder, ConfigFile: filepath.Join(dir, "a.js")}, "UI config file must define function UIConfig(): ")
	for _, bad := range []struct {
		config UIConfig
		want   string
	}{
		{UIConfig{ConfigFile: "a.js"}, "requires path"},
		{UIConfig{Path: "x", ConfigFile: "a.yaml"}, "unrecognized UI config file format"},
	} {
		if err := bad.config.Validate(); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v: %v", bad.config, err)
		}
	}
}

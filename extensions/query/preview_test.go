package query

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const metaTag = `<meta property="og:`

// page returns the page of a path, as a program without credentials gets it.
func page(h http.Handler, path string, header ...string) string {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "localhost"
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.String()
}

func TestLinkPreviews(t *testing.T) {
	h := listener(t, func(c *Config) {
		withPasswords(t, c)
		c.HTTP.Tenancy = pipeline.Optional[server.TenancyConfig]{}
		c.UI.LinkPreviews = true
	})
	got := page(h, "/trace/1")
	for _, want := range []string{
		`<meta property="og:title" content="web: GET /, 101ms, 1 error">`,
		`<meta property="og:description" content="2 spans of 2 services: web (1 error), a/b. Started 2024-05-01 10:00:00 UTC.">`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	for _, header := range []string{"Sec-Fetch-Mode", "Upgrade-Insecure-Requests"} {
		if got := page(h, "/trace/1", header, "1"); strings.Contains(got, metaTag) {
			t.Errorf("a browser gets %s", got)
		}
	}
	for _, path := range []string{"/trace/f", "/trace/1...2", "/search", "/"} {
		if got := page(h, path); strings.Contains(got, metaTag) {
			t.Errorf("%s: %s", path, got)
		}
	}
	off := listener(t, func(*Config) {})
	if got := page(off, "/trace/1"); strings.Contains(got, metaTag) {
		t.Errorf("previews are on by default: %s", got)
	}
	broken := querytest.NewStore(querytest.Shop())
	broken.Fail = querytest.ErrStore
	h = listener(t, func(c *Config) { c.UI.LinkPreviews, c.Storage = true, pipeline.BoundRef[Store](broken) })
	if got := page(h, "/trace/1"); strings.Contains(got, metaTag) || !strings.Contains(got, `id="boot"`) {
		t.Errorf("with a broken store: %s", got)
	}
}

func TestLinkPreviewsExclude(t *testing.T) {
	c := defaults()
	c.Storage = pipeline.BoundRef[Store](querytest.NewStore(querytest.Shop()))
	withPasswords(t, &c)
	c.UI.LinkPreviews = true
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "is not possible with tenancy") {
		t.Errorf("got %v", err)
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "index.html"), "<title>Jaeger UI</title>")
	u := ui{config: UIConfig{Path: dir, LinkPreviews: true}, jaeger: &jaegerUI{}}
	if err := u.open(); err == nil || !strings.Contains(err.Error(), "link_previews is not possible with the Jaeger UI") {
		t.Errorf("got %v", err)
	}
}

func TestPreviewOf(t *testing.T) {
	s := tracestore.Summary{RootService: `a"b`, RootName: "GET /?token=secret", Start: 1, End: uint64(1_234_567_890), Spans: 7}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", strings.Repeat("ü", 100)} {
		s.Services = append(s.Services, tracestore.ServiceSummary{Name: name, Spans: 1})
	}
	p := previewOf(&s)
	if want := `a"b: GET /, 1.23s`; p.Title != want {
		t.Errorf("got %s, want %s", p.Title, want)
	}
	if want := "7 spans of 7 services: a, b, c, d, e, 2 more. Started 1970-01-01 00:00:00 UTC."; p.Text != want {
		t.Errorf("got %s, want %s", p.Text, want)
	}
	s = tracestore.Summary{RootService: strings.Repeat("ü", 100), RootName: "x", Spans: 1, Services: s.Services[:1]}
	if p := previewOf(&s); p.Title != strings.Repeat("ü", 80)+"…: x, 0s" || p.Text != "1 span of 1 service: a." {
		t.Errorf("got %+v", p)
	}
	for d, want := range map[time.Duration]string{
		0: "0s", 999: "999ns", 123456: "123µs", 98765432: "98.8ms", 61 * time.Second: "1m1s", 3*time.Hour + 125*time.Second: "3h2m5s",
	} {
		if got := shortDuration(d); got != want {
			t.Errorf("%d: got %s, want %s", d, got, want)
		}
	}
}

package linktemplate

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestValidTemplates(t *testing.T) {
	for _, u := range []string{
		"https://logs.example.com/search?trace={traceId}&span={spanId}", "http://localhost:3000/{service}/{operation}#{start}-{end}",
		"https://example.com/?from={start:iso}&to={end:ns}&took={duration:us}", "mailto:{attribute.owner}@example.com?subject={traceId}",
		"https://example.com/{attribute.a:b/c}/{resource.host.name}", "HTTPS://example.com/", "https://user@example.com:8443?q={traceId}",
	} {
		c := Template{Name: "logs", URL: u}
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
	for _, c := range []Template{
		{Name: "a", URL: "https://a/", On: OnTrace}, {Name: "a", URL: "https://a/", On: OnSpan, Requires: []string{"attribute.x", "resource.y"}},
		{Name: "a", URL: "https://a/", On: OnAttribute, Key: "host.name"},
		{Name: "a", URL: "https://a/?q={query}&json={query:json}&from={start}&to={end:iso}&for={duration:s}", On: OnSearch},
		{Name: "a", URL: "https://a/?q={query:rison}&to={end:iso:jsurl}", Query: "{job=\"a\", s={service:json}} {{ x }} {}", On: OnService},
	} {
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestInvalidTemplates(t *testing.T) {
	f := func(c Template, key, want string) {
		t.Helper()
		err := c.Validate()
		var bad *pipeline.KeyError
		if !errors.As(err, &bad) || bad.Key != key || !strings.Contains(bad.Msg, want) {
			t.Errorf("%+v: %v, want %s: %s", c, err, key, want)
		}
	}
	link := func(u string) Template { return Template{Name: "logs", URL: u} }
	f(Template{URL: "https://a/"}, "name", "must be set")
	f(link(""), "url", `scheme "" is not allowed`)
	f(link("/search?trace={traceId}"), "url", `scheme "" is not allowed`)
	f(link("javascript:alert({traceId})"), "url", `scheme "javascript" is not allowed`)
	f(link("data:text/html,{service}"), "url", `scheme "data" is not allowed`)
	f(link("ftp://example.com/{traceId}"), "url", `scheme "ftp" is not allowed`)
	f(link("https:///{traceId}"), "url", "has no host")
	f(link("https://{attribute.host}/"), "url", "placeholder before the path")
	f(link("https://example.com:{attribute.port}/{traceId}"), "url", "placeholder before the path")
	f(link("{attribute.url}"), "url", `scheme "" is not allowed`)
	f(link("https://example.com/{traceID}"), "url", "unknown placeholder {traceID}; use {traceId}")
	f(link("https://example.com/{attribute.}"), "url", "unknown placeholder {attribute.}")
	f(link("https://example.com/{}"), "url", "unknown placeholder {}")
	f(link("https://example.com/{start:h}"), "url", "unknown unit in placeholder {start:h}; use s, ms, us, ns, iso")
	f(link("https://example.com/{duration:iso}"), "url", "use s, ms, us, ns")
	f(link("https://example.com/{traceId"), "url", "unpaired brace")
	f(link("https://example.com/traceId}"), "url", "unpaired brace")
	f(link("https://exa mple.com/"), "url", "is not an address")
	f(Template{Name: "a", URL: "https://a/", On: "link"}, "on", `"link" is not a place for links`)
	f(link("https://a/{query}"), "url", "unknown placeholder {query}; use {traceId}")
	f(link("https://a/{service:json:rison}"), "url", "unknown placeholder {service:json:rison}")
	f(link("https://a/{start:json:iso}"), "url", "unknown unit in placeholder {start:json:iso}")
	f(Template{Name: "a", URL: "https://a/{query}", Query: "{traceid}"}, "query", "unknown placeholder {traceid}; use {traceId}")
	f(Template{Name: "a", URL: "https://a/{traceId}", Query: "a"}, "query", "which url does not contain")
	f(Template{Name: "a", URL: "https://a/{query}", Query: "a", On: OnSearch}, "query", "must be empty")
	f(Template{Name: "a", URL: "https://a/{traceId}", On: OnService}, "url", "unknown placeholder {traceId} of a service; use {service}")
	f(Template{Name: "a", URL: "https://a/{traceId}", On: OnSearch}, "url", "unknown placeholder {traceId} of a search; use {query}")
	f(Template{Name: "a", URL: "https://a/", On: OnSearch, Key: "host.name"}, "key", "requires on: attribute")
	f(Template{Name: "a", URL: "https://a/", On: OnSearch, Requires: []string{"attribute.a"}}, "requires", "must be empty")
	f(Template{Name: "a", URL: "https://a/", On: OnAttribute}, "key", "must be set to an attribute")
	f(Template{Name: "a", URL: "https://a/", Key: "host.name"}, "key", "requires on: attribute")
	f(Template{Name: "a", URL: "https://a/", Requires: []string{"attribute.a", "host.name"}}, "requires::1", `"host.name" is not an attribute`)
}

func FuzzTemplate(f *testing.F) {
	f.Add("https://example.com/{traceId}?{attribute.a}")
	f.Add("mailto:{service}")
	f.Add("https://{{}}")
	f.Fuzz(func(t *testing.T, text string) {
		c := Template{Name: "a", URL: text}
		if c.Validate() != nil {
			return
		}
		if lower := strings.ToLower(text); !strings.HasPrefix(lower, "http://") && !strings.HasPrefix(lower, "https://") && !strings.HasPrefix(lower, "mailto:") {
			t.Errorf("accepted %q", text)
		}
	})
}

package linktemplate

import (
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline"
)

// everySystem returns a link to each system.
func everySystem() []Link {
	return []Link{
		{Loki: "https://grafana.example.com/"}, {Elasticsearch: "https://kibana.example.com/s/shop", Source: "logs-*'"},
		{OpenSearch: "https://search.example.com/_dashboards", Source: "otel"}, {Splunk: "https://splunk.example.com", Source: "main"},
		{Datadog: "https://app.datadoghq.eu", Source: "main"}, {CloudWatch: "https://eu-west-1.console.aws.amazon.com", Source: "/aws/lambda/shop"},
		{VictoriaLogs: "http://localhost:9428"}, {Prometheus: "https://grafana.example.com", Source: "mimir"},
		{Pyroscope: "https://grafana.example.com"}, {Grafana: "https://grafana.example.com"},
	}
}

// TestGallery checks that the templates of all systems are valid, and equal to the golden file that
// the test of the web UI fills in.
func TestGallery(t *testing.T) {
	var got []ForUI
	for _, l := range everySystem() {
		if err := l.Validate(); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
		for _, c := range Templates([]Link{l}) {
			if err := c.Validate(); err != nil {
				t.Errorf("%+v: %v", c, err)
			}
			got = append(got, c.ForUI())
		}
	}
	if systems := (&Link{}).systems(); len(systems) != len(everySystem()) {
		t.Errorf("%d links for %d systems", len(everySystem()), len(systems))
	}
	text, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/gallery.json", append(text, 10))
}

func TestGalleryNames(t *testing.T) {
	for _, c := range Templates([]Link{{Loki: "https://a", Name: "Lines"}}) {
		if c.Name != "Lines" {
			t.Errorf("name %q", c.Name)
		}
	}
}

func TestInvalidLinks(t *testing.T) {
	f := func(l Link, key, want string) {
		t.Helper()
		err := l.Validate()
		var bad *pipeline.KeyError
		if key == "" && (err == nil || errors.As(err, &bad) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v, want %s", l, err, want)
		}
		if key != "" && (!errors.As(err, &bad) || bad.Key != key || !strings.Contains(bad.Msg, want)) {
			t.Errorf("%+v: %v, want %s: %s", l, err, key, want)
		}
	}
	f(Link{Source: "a"}, "", "names no system; set the address of one of loki, elasticsearch")
	f(Link{Loki: "https://a", Splunk: "https://b"}, "splunk", "must be an element of links of its own, because loki is set here")
	for _, address := range []string{"grafana.example.com", "javascript:alert(1)", "https:///a", "https://a/?b=c", "https://a/#b",
		"https://a/{traceId}", "ftp://a"} {
		f(Link{Loki: address}, "loki", "is not the address of a server, such as https://loki.example.com")
	}
	f(Link{CloudWatch: "https://console.aws.amazon.com", Source: "a"}, "cloudwatch", "has no region")
	f(Link{CloudWatch: "https://eu-west-1.console.aws.amazon.com"}, "source", "must be set to the log group")
	f(Link{VictoriaLogs: "https://a", Source: "b"}, "source", "must be empty")
	f(Link{Splunk: "https://a", Source: "{service}"}, "source", "contains a brace")
}

// filled is a link of the golden file of addresses.
type filled struct{ Name, On, Service, URL string }

func filledLinks(t *testing.T) (links []filled) {
	t.Helper()
	text, err := os.ReadFile("testdata/urls.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &links); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(links, func(l filled) bool { return l.URL == "" })
}

// TestFilledLinks checks that the addresses are escaped, and that the query of each link contains
// the service that it was made of, as a quoted string.
func TestFilledLinks(t *testing.T) {
	for _, l := range filledLinks(t) {
		u, err := url.Parse(l.URL)
		if err != nil || u.Host == "" || strings.ContainsAny(l.URL, "{}\"`\\ ") {
			t.Errorf("%s %s: %s: %v", l.Name, l.On, l.URL, err)
			continue
		}
		text, err := url.PathUnescape(u.RawQuery + "#" + u.EscapedFragment())
		if err != nil {
			t.Errorf("%s %s: %v", l.Name, l.On, err)
			continue
		}
		switch l.Name {
		case "Kibana", "OpenSearch":
			text = strings.NewReplacer("!!", "!", "!'", "'").Replace(text)
		case "Loki", "Prometheus", "Pyroscope", "Grafana":
			text = queryOfPanes(t, u.Query().Get("panes"))
		}
		hasService := l.On != OnTrace && l.On != OnSearch && l.Name != "CloudWatch"
		if want := strconv.Quote(l.Service); hasService && !strings.Contains(text, want) {
			t.Errorf("%s %s: no %s in %s", l.Name, l.On, want, text)
		}
	}
}

// queryOfPanes returns the query in the parameter of Grafana's page Explore.
func queryOfPanes(t *testing.T, panes string) string {
	t.Helper()
	var explore struct {
		A struct {
			Datasource string
			Queries    []struct {
				Datasource                 struct{ Type, UID string }
				Expr, LabelSelector, Query string
			}
			Range struct{ From, To string }
		}
	}
	if err := json.Unmarshal([]byte(panes), &explore); err != nil || len(explore.A.Queries) != 1 {
		t.Errorf("%v in %s", err, panes)
		return ""
	}
	q := explore.A.Queries[0]
	if explore.A.Datasource == "" || q.Datasource.UID != explore.A.Datasource || q.Datasource.Type == "" ||
		q.Expr+q.LabelSelector+q.Query == "" || explore.A.Range.From == "" || explore.A.Range.To == "" {
		t.Errorf("a part is missing in %s", panes)
	}
	return q.Expr + q.LabelSelector + q.Query
}

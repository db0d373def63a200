package query_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"gopkg.in/yaml.v3"

	"github.com/tracing-backend/tracing/internal/wire/streaming"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// grafanaFile is what a file for Grafana's provisioning has in common with the others.
type grafanaFile struct {
	Datasources []struct {
		UID, Type, URL string
	}
	Groups []struct {
		Rules []struct {
			Condition string
			Data      []struct {
				RefID             string         `yaml:"refId"`
				DatasourceUID     string         `yaml:"datasourceUid"`
				RelativeTimeRange map[string]int `yaml:"relativeTimeRange"`
				Model             struct {
					Query            string
					MetricsQueryType string `yaml:"metricsQueryType"`
				}
			}
		}
	}
}

// grafanaFiles returns the YAML blocks of docs/grafana.md and the file for Compose.
func grafanaFiles(t *testing.T) (files []grafanaFile) {
	t.Helper()
	read := func(path string) string {
		b, err := os.ReadFile(filepath.Join(harness.Root(t), filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	texts := []string{read("deploy/compose/grafana/datasources.yaml")}
	for i, part := range strings.Split(read("docs/grafana.md"), "```") {
		if text, ok := strings.CutPrefix(part, "yaml\n"); ok && i%2 == 1 {
			texts = append(texts, text)
		}
	}
	for _, text := range texts {
		var f grafanaFile
		if err := yaml.Unmarshal([]byte(text), &f); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		files = append(files, f)
	}
	return files
}

// The provisioning files in the documentation work: data sources pass the checks that Grafana
// makes, and the queries of alert rules are answered.
func TestGrafanaFiles(t *testing.T) {
	p := inprocess.Start(t)
	now := time.Now()
	span := harness.JSONSpan("5b8efff798038103d269b633813fc60c", "checkout", "pay", now, time.Millisecond)
	if code, answer := p.PostOTLP("application/json", span); code != 200 {
		t.Fatalf("%d %s", code, answer)
	}
	get := func(path string) string {
		t.Helper()
		code, body := harness.Fetch(t, p.QueryURL()+path)
		if code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, body)
		}
		return string(body)
	}
	sources, rules := make(map[string]string), 0
	for _, f := range grafanaFiles(t) {
		for _, d := range f.Datasources {
			u, err := url.Parse(d.URL)
			if err != nil || u.Port() != "16686" || sources[d.UID] != "" && sources[d.UID] != u.Path {
				t.Errorf("%+v: %v", d, err)
			}
			sources[d.UID] = u.Path
			switch d.Type {
			case "tempo":
				if body := get(u.Path + "/api/echo"); body != "echo" {
					t.Errorf("echo: %s", body)
				}
				get(u.Path + "/api/status/buildinfo")
				get(u.Path + "/api/search?q=" + url.QueryEscape(`{ resource.service.name = "checkout" }`))
			case "jaeger":
				if body := get(u.Path + "/api/services"); !strings.Contains(body, "checkout") {
					t.Errorf("services: %s", body)
				}
			default:
				t.Errorf("unknown type %q", d.Type)
			}
		}
		for _, group := range f.Groups {
			for _, r := range group.Rules {
				rules++
				refs := make(map[string]bool)
				for _, data := range r.Data {
					refs[data.RefID] = true
					if data.DatasourceUID == "__expr__" {
						continue
					}
					path := "/api/metrics/query_range"
					if data.Model.MetricsQueryType == "instant" {
						path = "/api/metrics/query"
					}
					get(sources[data.DatasourceUID] + path + "?" + url.Values{
						"q":     {data.Model.Query},
						"start": {fmt.Sprint(now.Unix() - int64(data.RelativeTimeRange["from"]))}, "end": {fmt.Sprint(now.Unix())},
					}.Encode())
				}
				if !refs[r.Condition] {
					t.Errorf("no query for the condition %q", r.Condition)
				}
			}
		}
	}
	if len(sources) != 2 || rules == 0 {
		t.Errorf("%d data sources, %d rules", len(sources), rules)
	}
}

// Grafana sends the same headers for streaming and over HTTP, to the same port.
func TestGrafanaHeaders(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("TOKEN a,b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := inprocess.StartYAML(t, fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: "localhost:0", tenancy: {header: x-tenant}}}}}
exporters: {memory: {}}
extensions:
  query: {storage: memory, http: {endpoint: "localhost:0", tenancy: {header: x-tenant}, auth: {bearer_tokens_file: %q}}}
service:
  extensions: [query]
  pipelines: {traces: {receivers: [otlp], exporters: [memory]}}
`, tokens))
	for _, tenant := range []string{"a", "b", "c"} {
		if code, answer := harness.Request(t, http.MethodPost, "http://"+p.OTLPHTTP()+"/v1/traces",
			harness.JSONSpan("5b8efff798038103d269b633813fc60c", "of-"+tenant, "pay", time.Now(), time.Millisecond),
			"Content-Type", "application/json", "X-Tenant", tenant); code != 200 {
			t.Fatalf("%d %s", code, answer)
		}
	}
	conn, err := grpc.NewClient(strings.TrimPrefix(p.QueryURL(), "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := streaming.NewStreamingQuerierClient(conn)
	for _, c := range []struct {
		token, tenant string
		code          int
		status        codes.Code
	}{
		{"TOKEN", "a", 200, codes.OK}, {"TOKEN", "b", 200, codes.OK}, {"TOKEN", "c", 401, codes.PermissionDenied},
		{"TOKEN", "", 401, codes.PermissionDenied}, {"other", "a", 401, codes.Unauthenticated},
	} {
		headers := []string{"Authorization", "Bearer " + c.token}
		if c.tenant != "" {
			headers = append(headers, "X-Tenant", c.tenant)
		}
		service := "of-" + c.tenant
		code, body := harness.Request(t, http.MethodGet, p.QueryURL()+"/tempo/api/search", "", headers...)
		if code != c.code || code == 200 && !strings.Contains(body, service) {
			t.Errorf("%+v: %d %s", c, code, body)
		}
		stream, err := client.Search(metadata.AppendToOutgoingContext(context.Background(), headers...), &streaming.SearchRequest{})
		if err != nil {
			t.Fatal(err)
		}
		found, err := stream.Recv()
		if status.Code(err) != c.status || err == nil && (len(found.Traces) != 1 || found.Traces[0].RootServiceName != service) {
			t.Errorf("%+v: streaming: %v %v", c, found, err)
		}
	}
}

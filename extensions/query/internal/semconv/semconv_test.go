package semconv

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func namesOf(t *testing.T, c Config) *Names {
	t.Helper()
	n, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestFamilies checks the names of attributes, the newest first.
func TestFamilies(t *testing.T) {
	n := namesOf(t, DefaultConfig())
	for _, want := range [][]string{
		{"http.request.method", "http.method"},
		{"http.response.status_code", "http.status_code"},
		{"url.full", "http.url"},
		{"url.scheme", "http.scheme"},
		{"user_agent.original", "http.user_agent"},
		{"client.address", "http.client_ip"},
		{"http.request.body.size", "http.request_content_length"},
		{"http.response.body.size", "http.response_content_length"},
		{"http.request.resend_count", "http.resend_count", "http.retry_count"},
		{"server.address", "net.host.name"},
		{"server.port", "net.host.port"},
		{"network.protocol.name", "net.protocol.name", "net.app.protocol.name"},
		{"db.system.name", "db.system"},
		{"db.query.text", "db.statement"},
		{"db.operation.name", "db.operation"},
		{"db.namespace", "db.name", "db.cassandra.keyspace", "db.hbase.namespace"},
		{"deployment.environment.name", "deployment.environment"},
		{"gen_ai.provider.name", "gen_ai.system"},
		{"gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"},
		{"code.function.name", "code.function"},
		{"messaging.destination.name", "messaging.destination"},
		{"rpc.system.name", "rpc.system"},
	} {
		for _, key := range want {
			if got := n.Of(key); got != tracestore.JoinNames(want...) {
				t.Errorf("names of %s: %q, want %q", key, got, want)
			}
		}
	}
	// The address of a peer has another new name on servers than on clients.
	for _, key := range []string{"", "http.target", "net.peer.name", "net.peer.port"} {
		if got := n.Of(key); got != "" {
			t.Errorf("names of %q: %q", key, got)
		}
	}
}

// TestRenames checks that versions do not descend and that no name belongs to two attributes.
func TestRenames(t *testing.T) {
	var last [3]int
	seen := make(map[string]bool)
	for line := range strings.Lines(renames) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var version [3]int
		f := strings.Fields(line)
		if len(f) != 3 || f[1] == f[2] || seen[f[1]] {
			t.Fatalf("invalid line %q", line)
		}
		if _, err := fmt.Sscanf(f[0], "%d.%d.%d", &version[0], &version[1], &version[2]); err != nil || slices.Compare(version[:], last[:]) < 0 {
			t.Errorf("invalid version in line %q: %v", line, err)
		}
		last, seen[f[1]] = version, true
	}
}

// TestConfig checks families of the configuration.
func TestConfig(t *testing.T) {
	if n := namesOf(t, Config{Families: map[string][]string{"new": {"old"}}}); n.Of("http.method") != "" || n.Of("new") != "" {
		t.Error("names although they are not enabled")
	}
	n := namesOf(t, Config{Enabled: true, Families: map[string][]string{"new": {"old", "older"}, "verb": {"http.request.method"}}})
	verb := tracestore.JoinNames("verb", "http.request.method", "http.method")
	if n.Of("older") != tracestore.JoinNames("new", "old", "older") || n.Of("http.method") != verb {
		t.Errorf("%q, %q", n.Of("older"), n.Of("http.method"))
	}
	n = namesOf(t, Config{Enabled: true, Families: map[string][]string{"server.address": {"net.peer.name"}}})
	if got := n.Of("server.address"); got != tracestore.JoinNames("server.address", "net.peer.name", "net.host.name") {
		t.Errorf("%q", got)
	}
	n = namesOf(t, Config{Enabled: true, Families: map[string][]string{"db.name": {"db.namespace"}}})
	if got := n.Of("db.name"); got != tracestore.JoinNames("db.name", "db.namespace", "db.cassandra.keyspace", "db.hbase.namespace") {
		t.Errorf("%q", got)
	}
	for _, c := range []struct {
		families map[string][]string
		want     string
	}{
		{map[string][]string{"a": nil}, "at least one older name"},
		{map[string][]string{"a": {""}}, "not a name"},
		{map[string][]string{"a": {"x"}, "b": {"x"}}, "two attributes"},
		{map[string][]string{"a": {"http.method"}}, "two attributes"},
		{map[string][]string{"a": {"b"}, "b": {"c"}}, `"b" is both a current and an older name`},
		{map[string][]string{"a": {"c"}, "b": {"a"}}, `"a" is both a current and an older name`},
	} {
		if _, err := New(Config{Enabled: true, Families: c.families}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.families, err)
		}
	}
}

// TestWithoutOlder checks that a list keeps one name of each attribute.
func TestWithoutOlder(t *testing.T) {
	n := namesOf(t, DefaultConfig())
	keys := []string{"a", "db.system", "http.method", "http.request.method"}
	if got, want := n.WithoutOlder(keys), []string{"a", "db.system", "http.request.method"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

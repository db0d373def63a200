package legacy_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/cluster"
	"github.com/tracing-backend/tracing/test/harness"
)

// TestQueries checks searches, traces by id and lists of names over two shards, and with a replica
// of each killed. When a shard has no replica left, answers hold what the other one has, and say
// what is missing.
func TestQueries(t *testing.T) {
	harness.SkipIfShort(t)
	i := install(t)
	d := bench.New(2, time.Now().Add(-time.Hour))
	r, err := load.Run(t.Context(), load.Options{Target: i.collector("").OTLPGRPC(), Retry: time.Minute}, joined(d.Requests(2_000, 100), 40))
	if err != nil || r.Acked != r.Spans {
		t.Fatalf("sent %+v: %v", r, err)
	}
	traces := d.Traces(2_000)
	base := i.query().QueryURL()
	i.waitSynced()
	checkAll(t, d, traces, base)

	for _, n := range []*cluster.Node{i.Node(0), i.Node(3)} {
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	checkAll(t, d, traces, base)

	if err := i.Node(2).Kill(); err != nil { // the last replica of shard 2
		t.Fatal(err)
	}
	harness.Poll(t, "the query service to notice", func() bool {
		_, body := harness.Fetch(t, base+"/api/traces?service=any")
		return strings.Contains(string(body), "no server responds")
	})
	checkPartial(t, i, d, traces, base)
}

// checkAll checks the responses of a query service that can read everything.
func checkAll(t *testing.T, d *bench.Dataset, traces int, base string) {
	t.Helper()
	checkSearch(t, d, traces, base, func(string) bool { return true }, "")
	for n := range traces {
		spans := d.Trace(n)
		id := spans[0].TraceID.String()
		if got := harness.SpanCounts(t, base, id); len(got) != len(spans) {
			t.Errorf("trace %s has %d spans of %d", id, len(got), len(spans))
		}
	}
	if names := services(t, base); len(names) < 20 || !slices.IsSorted(names) {
		t.Errorf("services %v, want the services of %v", names, d.Services())
	}
}

// checkPartial checks the responses of a query service that cannot read shard 2.
func checkPartial(t *testing.T, i *installation, d *bench.Dataset, traces int, base string) {
	t.Helper()
	here := make(map[string]bool)
	for id := range strings.Lines(i.ask(i.Node(1), "SELECT lower(hex(trace_id)) FROM tracing.payload_local GROUP BY trace_id")) {
		here[strings.TrimSpace(id)] = true
	}
	if len(here) == 0 || len(here) == traces {
		t.Fatalf("%d traces of %d are on shard 1", len(here), traces)
	}
	const missing = "1 of 2 shards of cluster tracing: no server responds" // 18.16 cannot tell which
	checkSearch(t, d, traces, base, func(id string) bool { return here[id] }, missing)
	for n := range traces {
		id := d.Trace(n)[0].TraceID.String()
		status, body := harness.Fetch(t, base+"/api/traces/"+id)
		if here[id] && (status != http.StatusOK || strings.Contains(string(body), missing)) {
			t.Errorf("trace %s is on shard 1: status %d", id, status)
		}
		if !here[id] && !strings.Contains(string(body), missing) {
			t.Errorf("trace %s is on shard 2: status %d, %s", id, status, body)
		}
	}
}

// checkSearch searches for the traces of a service, for all and for the newest ones. It checks that
// exactly the newest of those that exist are found, and that a message has a text.
func checkSearch(t *testing.T, d *bench.Dataset, traces int, base string, exists func(id string) bool, message string) {
	t.Helper()
	service := d.Resources()[d.Trace(0)[0].Resource].Service
	latest := make(map[string]uint64) // start of the latest span of the service
	for n := range traces {
		for _, s := range d.Trace(n) {
			if id := s.TraceID.String(); d.Resources()[s.Resource].Service == service && exists(id) {
				latest[id] = max(latest[id], s.Start)
			}
		}
	}
	newest := slices.SortedFunc(maps.Keys(latest), func(a, b string) int { return cmp.Compare(latest[b], latest[a]) })
	for _, limit := range []int{5, 2 * traces} {
		want := slices.Sorted(slices.Values(newest[:min(limit, len(newest))]))
		found, messages := search(t, base, service, limit)
		if slices.Sort(found); !slices.Equal(found, want) {
			t.Errorf("the search for %d traces of %s found %v, want %v", limit, service, found, want)
		}
		if !strings.Contains(messages, message) || message == "" && messages != "" && limit > traces {
			t.Errorf("the search for %d traces of %s has the messages %q, want %q", limit, service, messages, message)
		}
	}
}

// search returns the ids of the newest traces of a service, and the messages of the response.
func search(t *testing.T, base, service string, limit int) (ids []string, messages string) {
	t.Helper()
	parameters := url.Values{"service": {service}, "limit": {strconv.Itoa(limit)},
		"start": {strconv.FormatInt(time.Now().Add(-3*time.Hour).UnixMicro(), 10)},
		"end":   {strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10)}}
	status, body := harness.Fetch(t, base+"/api/traces?"+parameters.Encode())
	var answer struct {
		Data   []harness.UITrace
		Errors []struct{ Msg string }
	}
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK {
		t.Fatalf("search: status %d, %v: %.500s", status, err, body)
	}
	for _, tr := range answer.Data {
		ids = append(ids, tr.TraceID)
	}
	for _, e := range answer.Errors {
		messages += e.Msg + "\n"
	}
	return ids, messages
}

// services returns the names of the services.
func services(t *testing.T, base string) []string {
	t.Helper()
	status, body := harness.Fetch(t, base+"/api/services")
	var answer struct{ Data []string }
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK {
		t.Fatalf("services: status %d, %v: %s", status, err, body)
	}
	return answer.Data
}

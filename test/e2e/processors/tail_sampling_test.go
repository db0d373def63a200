package processors_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/harness"
)

// configuration reads testdata/tail_sampling.yaml with some values replaced.
func configuration(t *testing.T, dataDir, decisionWait, numTraces string) string {
	t.Helper()
	yaml, err := os.ReadFile("testdata/tail_sampling.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("DATA", dataDir, "DECISION_WAIT", decisionWait, "NUM_TRACES", numTraces).Replace(string(yaml))
}

// undecided is a decision_wait that no test reaches.
const undecided = "30m"

const (
	services   = 20
	perRequest = 100
)

// trace is one of the traces that a test sends: a root, a child that arrives later, and a health
// check.
type trace int

func (i trace) id() (id pcommon.TraceID) {
	binary.BigEndian.PutUint64(id[:], 0x9e3779b97f4a7c15*uint64(i+1))
	binary.BigEndian.PutUint64(id[8:], uint64(i+1))
	return id
}

func (i trace) service() string { return fmt.Sprintf("service-%d", i%services) }
func (i trace) failed() bool    { return i%50 == 0 }
func (i trace) slow() bool      { return i%40 == 1 }
func (i trace) gold() bool      { return i%30 == 2 }

// drawn reports whether the probabilistic policy keeps the trace: a tenth of all, by a hash of the
// id and the salt.
func (i trace) drawn() bool {
	h, id := fnv.New64a(), i.id()
	h.Write([]byte("salt"))
	h.Write(id[:])
	return float64(h.Sum64()) <= 0.1*math.MaxUint64
}

func (i trace) kept() bool { return i.failed() || i.slow() || i.gold() || i.drawn() }

var began = time.Now().Add(-time.Minute)

// request returns the first or the later spans of some traces.
func request(from, to trace, later bool) ptrace.Traces {
	td := ptrace.NewTraces()
	for i := from; i < to; i++ {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", i.service())
		ss := rs.ScopeSpans().AppendEmpty().Spans()
		span := func(n byte, name string, took time.Duration) ptrace.Span {
			s := ss.AppendEmpty()
			s.SetTraceID(i.id())
			s.SetSpanID(pcommon.SpanID{n, 7: 1})
			s.SetName(name)
			s.SetStartTimestamp(pcommon.NewTimestampFromTime(began))
			s.SetEndTimestamp(pcommon.NewTimestampFromTime(began.Add(took)))
			s.Attributes().PutStr("card", "card 4111111111111111")
			s.Attributes().PutStr("internal", "x")
			return s
		}
		if !later {
			took := 20 * time.Millisecond
			if i.slow() {
				took = 800 * time.Millisecond
			}
			span(1, "GET /orders", took)
			span(2, "health", time.Millisecond)
			continue
		}
		child := span(3, "SELECT", 10*time.Millisecond)
		child.SetParentSpanID(pcommon.SpanID{1, 7: 1})
		if i.failed() {
			child.Status().SetCode(ptrace.StatusCodeError)
		}
		if i.gold() {
			child.Attributes().PutStr("tier", "gold")
		}
	}
	return td
}

// sendTraces sends n traces, 2000 roots and then their children at a time.
func sendTraces(t *testing.T, p *harness.Process, n trace) {
	t.Helper()
	url := "http://" + p.OTLPHTTP() + "/v1/traces"
	send := func(from, to trace, later bool) {
		t.Helper()
		for ; from < to; from += perRequest {
			body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(request(from, min(to, from+perRequest), later))
			if err != nil {
				t.Fatal(err)
			}
			status, answer := harness.Request(t, http.MethodPost, url, string(body), "Content-Type", "application/x-protobuf")
			if status != http.StatusOK {
				t.Fatalf("status %d: %s", status, answer)
			}
		}
	}
	const together = 2000
	for from := trace(0); from < n; from += together {
		send(from, min(n, from+together), false)
		send(from, min(n, from+together), true)
	}
}

// accounts returns the spans of all processors by component and outcome.
func accounts(t *testing.T, p *harness.Process) map[string]float64 {
	t.Helper()
	sums := map[string]float64{}
	for sample, v := range harness.Metrics(t, p.AdminURL()) {
		name, labels, _ := strings.Cut(sample, "{")
		label := func(name string) string {
			_, rest, _ := strings.Cut(labels, name+`="`)
			value, _, _ := strings.Cut(rest, `"`)
			return value
		}
		switch {
		case name == "tracing_held_spans":
			sums[label("component")+" held"] += v
		case name == "tracing_pipeline_spans_total" && label("kind") == "processor":
			sums[label("component")+" "+label("outcome")] += v
		case strings.HasPrefix(name, "tracing_held") || name == "go_memstats_heap_alloc_bytes":
			sums[name] = v
		}
	}
	return sums
}

var processorIDs = []string{"attributes", "resource", "filter", "transform", "redaction", "tail_sampling", "batch"}

// TestTailSampling sends traces through seven processors to a store. The stored ones are exactly
// those that the policies select, their attributes are as configured, and every span is accounted
// for.
func TestTailSampling(t *testing.T) {
	n, wait := trace(soak.Rounds(t, 20000, 4000)), "8s" // the children are sent before the decision
	if testing.Short() {
		wait = "2s"
	}
	p := harness.RunYAML(t, configuration(t, t.TempDir(), wait, "50000"))
	p.AwaitReady()
	sendTraces(t, p, n)
	harness.Poll(t, "no held spans", func() bool {
		a := accounts(t, p)
		return a["tail_sampling in"] == float64(2*n) && a["tail_sampling held"] == 0
	})
	var want, got []string
	for i := range n {
		if i.kept() {
			want = append(want, i.id().String())
		}
	}
	for service := range services {
		got = append(got, stored(t, p, fmt.Sprintf("service-%d", service))...)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d traces are stored, want %d", len(got), len(want))
	}
	a := accounts(t, p)
	for _, id := range processorIDs {
		if in := a[id+" in"]; in == 0 || in != a[id+" sent"]+a[id+" refused"]+a[id+" dropped"]+a[id+" held"] {
			t.Errorf("%s does not balance: %v", id, a)
		}
	}
	if a["filter dropped"] != float64(n) || a["tail_sampling sent"] != float64(2*len(want)) || a["tracing_held_bytes"] != 0 {
		t.Errorf("accounts: %v", a)
	}
	if code := p.Terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.Accounting()
	t.Logf("%d of %d traces were kept", len(want), n)
}

// stored returns the ids of the traces of a service, and checks their attributes.
func stored(t *testing.T, p *harness.Process, service string) (ids []string) {
	t.Helper()
	status, body := harness.Fetch(t, p.QueryURL()+"/api/traces?limit=2000&lookback=1h&service="+service)
	var answer harness.UIAnswer
	var traces []harness.UITrace
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK {
		t.Fatalf("status %d: %v", status, err)
	}
	if err := json.Unmarshal(answer.Data, &traces); err != nil {
		t.Fatal(err)
	}
	for _, tr := range traces {
		ids = append(ids, tr.TraceID)
		if len(tr.Spans) != 2 {
			t.Errorf("trace %s has %d spans, want 2", tr.TraceID, len(tr.Spans))
		}
		for _, s := range tr.Spans {
			tags := strings.Join(append(harness.TagStrings(s.Tags), harness.TagStrings(tr.Processes[s.ProcessID].Tags)...), " ")
			operation := `operation:string="` + s.OperationName + `"`
			for _, tag := range []string{`env:string="prod"`, `card:string="card ****"`, `cluster:string="eu"`, operation} {
				if !strings.Contains(tags, tag) {
					t.Fatalf("trace %s: no %s in %s", tr.TraceID, tag, tags)
				}
			}
			if strings.Contains(tags, "internal:") {
				t.Fatalf("trace %s: %s", tr.TraceID, tags)
			}
		}
	}
	return ids
}

// TestHeldSpansAreLostByKill checks that the start log says where acknowledged spans are.
func TestHeldSpansAreLostByKill(t *testing.T) {
	dir := t.TempDir()
	yaml := configuration(t, dir, undecided, "50000")
	p := harness.RunYAML(t, yaml)
	p.AwaitReady()
	if line := p.Await("msg", "pipeline ready"); line["acknowledged-spans-are"] != "tail_sampling: in memory, later disk: stored" {
		t.Errorf("start log: %v", line)
	}
	warned := slices.ContainsFunc(p.LogLines(), func(line map[string]any) bool {
		return line["level"] == "warn" &&
			strings.Contains(fmt.Sprint(line["msg"]), "if the process is killed, these are lost, although exporter disk")
	})
	if !warned {
		t.Error("no warning about held spans")
	}
	sendTraces(t, p, 100)
	if held := accounts(t, p)["tail_sampling held"]; held != 200 {
		t.Errorf("%v spans are held, want 200", held)
	}
	p.Kill()
	p = harness.RunYAML(t, yaml)
	p.AwaitReady()
	for service := range services {
		if ids := stored(t, p, fmt.Sprintf("service-%d", service)); len(ids) > 0 {
			t.Errorf("traces %v are stored, but were not decided", ids)
		}
	}
	if code, _, stderr := harness.Command(t, "validate", "--strict", "--config", writeFile(t, yaml)); code == 0 ||
		!strings.Contains(stderr, "acknowledges spans and then holds them in memory") {
		t.Errorf("validate --strict: %d %s", code, stderr)
	}
}

func writeFile(t *testing.T, yaml string) string {
	t.Helper()
	file := t.TempDir() + "/tracing.yaml"
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestHeldMemoryIsBounded sends more traces than service.limits.held allows.
func TestHeldMemoryIsBounded(t *testing.T) {
	const held = 16 << 20
	yaml := configuration(t, t.TempDir(), undecided, "200000") + "  limits: {held: 16MiB}\n"
	p := harness.RunYAML(t, yaml)
	p.AwaitReady()
	p.WatchMemory()
	refused := 0
	for from := trace(0); from < 20000; from += perRequest {
		body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(request(from, from+perRequest, false))
		if err != nil {
			t.Fatal(err)
		}
		status, _ := harness.Request(t, http.MethodPost, "http://"+p.OTLPHTTP()+"/v1/traces", string(body), "Content-Type", "application/x-protobuf")
		switch status {
		case http.StatusOK:
		case http.StatusTooManyRequests:
			refused++
		default:
			t.Fatalf("status %d", status)
		}
	}
	a := accounts(t, p)
	if refused < 50 || a["tracing_held_bytes"] > held || a["tracing_held_bytes"] < held/2 {
		t.Errorf("%d requests were refused: %v", refused, a)
	}
	if peak := p.PeakMemory(); peak > 256 {
		t.Errorf("peak memory is %d MiB with %d MiB of held spans", peak, held>>20)
	}
	p.Terminate()
	p.Accounting()
}

// TestOpenTracesAreBounded holds many open traces and compares the memory with its limit.
func TestOpenTracesAreBounded(t *testing.T) {
	n := trace(soak.Rounds(t, 100000, 10000))
	p := harness.RunYAML(t, configuration(t, t.TempDir(), undecided, "200000"))
	p.AwaitReady()
	limits := p.Await("msg", "set soft memory limit")
	before := p.WatchMemory()
	sendTraces(t, p, n)
	a := accounts(t, p)
	if a["tail_sampling held"] != float64(2*n) {
		t.Errorf("%v spans are held, want %d", a["tail_sampling held"], 2*n)
	}
	if a["tracing_held_bytes"] > a["tracing_held_limit_bytes"] {
		t.Errorf("accounts: %v", a)
	}
	t.Logf("%d traces: held bytes %.0f MiB, limit %.0f MiB, Go heap %.0f MiB, peak RSS %d MiB after %d MiB, soft memory limit %v",
		n, a["tracing_held_bytes"]/(1<<20), a["tracing_held_limit_bytes"]/(1<<20), a["go_memstats_heap_alloc_bytes"]/(1<<20),
		p.PeakMemory(), before, limits["limit"])
	if code := p.Terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.Accounting()
}

package examples_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// want is the trace that every program sends, in the terms of the query API: operation, parent and
// tags of each span, and the fields of its logs.
var want = []string{
	"POST /orders",
	"  http.request.method:string=\"POST\"", "  http.response.status_code:int64=202", "  http.route:string=\"/orders\"",
	"  order.count:int64=2", "  order.gift:bool=true", "  order.in_stock:string=\"[true,false]\"",
	"  order.items:string=\"[\\\"book\\\",\\\"pen\\\"]\"", "  order.prices:string=\"[9.5,3.25]\"",
	"  order.quantities:string=\"[1,2]\"", "  order.total:float64=12.75", "  otel.scope.name:string=\"shop\"",
	"  otel.scope.version:string=\"1.0.0\"", "  span.kind:string=\"server\"",
	"  log event:string=\"retry\" retry.attempt:int64=1",
	"POST /orders > INSERT orders",
	"  db.query.text:string=\"INSERT INTO orders VALUES (?, ?)\"", "  db.system.name:string=\"postgresql\"", "  error:bool=true",
	"  otel.scope.name:string=\"shop\"", "  otel.scope.version:string=\"1.0.0\"", "  otel.status_code:string=\"ERROR\"",
	"  otel.status_description:string=\"deadlock detected\"", "  span.kind:string=\"client\"",
	"  log event:string=\"exception\" exception.message:string=\"deadlock detected\"",
	"POST /orders > send orders",
	"  messaging.destination.name:string=\"orders\"", "  messaging.message.body.size:int64=512", "  messaging.system:string=\"kafka\"",
	"  otel.scope.name:string=\"shop\"", "  otel.scope.version:string=\"1.0.0\"", "  otel.status_code:string=\"OK\"",
	"  span.kind:string=\"producer\"",
}

// Every program sends the same trace, and all of it is stored.
func TestTraces(t *testing.T) {
	harness.SkipIfShort(t)
	for language, program := range programs() {
		t.Run(language, func(t *testing.T) {
			cmd := program.command(t, 2, 0)
			p := harness.RunAllInOne(t, t.TempDir())
			cmd.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+p.OTLPHTTP())
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			ids := sampledIDs(t, string(out))
			if len(ids) != 2 {
				t.Fatalf("output has %d sampled orders:\n%s", len(ids), out)
			}
			for _, id := range ids {
				checkTrace(t, p, program.service, id)
			}
		})
	}
}

// sampledIDs returns the ids of the sampled traces in the output of a program.
func sampledIDs(t *testing.T, out string) (ids []string) {
	t.Helper()
	for line := range strings.Lines(out) {
		var n int
		var id string
		var sampled bool
		if _, err := fmt.Sscanf(line, "order %d trace %s sampled %t", &n, &id, &sampled); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if sampled {
			ids = append(ids, id)
		}
	}
	return ids
}

func checkTrace(t *testing.T, p *harness.Process, service, id string) {
	t.Helper()
	trace := fetchTrace(t, p, id)
	operations := map[string]string{}
	for _, s := range trace.Spans {
		operations[s.SpanID] = s.OperationName
	}
	blocks := make([]string, 0, len(trace.Spans))
	for _, s := range trace.Spans {
		name := s.OperationName
		if len(s.References) > 0 {
			name = operations[s.References[0].SpanID] + " > " + name
		}
		blocks = append(blocks, strings.Join(append([]string{name}, describe(s)...), "\n"))
		process := trace.Processes[s.ProcessID]
		if tags := harness.TagStrings(process.Tags); process.ServiceName != service || !slices.Contains(tags, `service.version:string="1.0.0"`) ||
			!slices.ContainsFunc(tags, func(tag string) bool { return strings.HasPrefix(tag, "telemetry.sdk.language:") }) {
			t.Errorf("span %q: service %q with %q, want %q", s.OperationName, process.ServiceName, tags, service)
		}
		if s.StartTime == 0 || s.Duration < 0 {
			t.Errorf("span %q: start %d, duration %d", s.OperationName, s.StartTime, s.Duration)
		}
	}
	slices.Sort(blocks)
	if got, want := strings.Join(blocks, "\n"), strings.Join(want, "\n"); got != want {
		t.Errorf("trace %s is\n%s\nwant\n%s", id, got, want)
	}
}

package explain

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestKinds checks which attributes are inputs by their names.
func TestKinds(t *testing.T) {
	for kind, keys := range map[attributeKind][]string{
		input: {"feature_flag.result.variant", "feature_flag.key", "tenant.id", "http.request.method", "http.request.header.x", "user.plan",
			"db.query.text", "db.shard", "payment.provider", "cart.items", "url.path", "deployment.status", "timeout.ms2", "classical"},
		outcome: {"error", "error.type", "exception.message", "http.status_code", "http.response.status_code", "http.response.body.size",
			"rpc.grpc.status_code", "otel.status_description", "http.request.resend_count", "retry.count", "call.attempts", "query.duration_ms",
			"payment.result", "Failure-Reason", "db.response.returned_rows"},
	} {
		for _, name := range keys {
			c := newCounter(nil, nil)
			if got := c.kindOf(&key{keyID: keyID{place: tracestore.SpanAttribute, key: name}}); got != kind {
				t.Errorf("%s is an %s", name, got)
			}
			if got := c.kindOf(&key{keyID: keyID{place: tracestore.ResourceAttribute, key: name}}); got != input {
				t.Errorf("%s of a resource is an %s", name, got)
			}
		}
	}
}

// TestUnknownKinds checks that the data decides about keys whose names do not tell what they are:
// what only failed spans have is an outcome, and what names an operation is not listed.
func TestUnknownKinds(t *testing.T) {
	c := newCounter(nil, nil)
	for i := range 1000 {
		selected := i%5 == 0
		if err := c.beginTrace(selected); err != nil {
			t.Fatal(err)
		}
		r := &otlpdata.Resource{Service: "web", Raw: []byte("web")}
		span := func(id byte, name string, code int32, kvs ...otlpdata.KeyValue) {
			c.span(tracestore.Span{Resource: r, Span: &otlpdata.Span{SpanID: otlpdata.SpanID{id}, Name: name, StatusCode: code, Attributes: kvs}})
		}
		if selected {
			span(1, "GET /cart", otlpdata.StatusError, text("detail", "reset"), text("route", "/cart"), text("color", "blue"))
			span(2, "release", 0, text("table", "stock"))
			continue
		}
		name := []string{"/cart", "/list"}[i%2]
		span(1, "GET "+name, 0, text("route", name), text("color", []string{"blue", "green", "red"}[i%3]))
		span(2, "insert", 0, text("table", "orders"))
	}
	list := c.rankAttributes()
	if got := describe(list); !slices.Equal(got, []string{"color = blue", "detail = reset"}) {
		t.Errorf("lines %q", got)
	}
	for i, want := range []attributeKind{input, outcome} {
		if got := list.lines[i].kind; got != want {
			t.Errorf("line %d is an %s", i, got)
		}
	}
}

// TestDependentLines checks that a line that differs only because of another one is listed after
// independent ones, although it differs more.
func TestDependentLines(t *testing.T) {
	c := countSpans(t, 3000, func(i int) (bool, []otlpdata.KeyValue) {
		flag, plan, tenant := i%4 == 0, i%4 == 0 && i%5 > 0 || i%7 == 0, i%11 == 0
		selected := flag && i%3 > 0 || tenant && i%2 == 0
		return selected, []otlpdata.KeyValue{text("flag", fmt.Sprint(flag)), text("plan", fmt.Sprint(plan)), text("tenant", fmt.Sprint(tenant))}
	})
	list := c.rankAttributes()
	if got := describe(list); !slices.Equal(got, []string{"flag = true", "tenant = true", "plan = true"}) {
		t.Fatalf("lines %q", got)
	}
	if with := list.lines[2].with; with != list.lines[0] {
		t.Errorf("plan depends on %v", with)
	}
}

// TestPeers checks which calls wait for a peer that sends no spans.
func TestPeers(t *testing.T) {
	c := newCounter(nil, nil)
	for range 3 {
		if err := c.beginTrace(false); err != nil {
			t.Fatal(err)
		}
		span := func(service string, id, parent byte, kind int32, peer string) {
			s := &otlpdata.Span{SpanID: otlpdata.SpanID{id}, Name: fmt.Sprint(kind, id), Kind: kind}
			if parent > 0 {
				s.ParentID = otlpdata.SpanID{parent}
			}
			if peer != "" {
				s.Attributes = []otlpdata.KeyValue{text("peer.service", peer)}
			}
			c.span(tracestore.Span{Resource: &otlpdata.Resource{Service: service, Raw: []byte(service)}, Span: s})
		}
		span("pay", 1, 0, otlpdata.KindServer, "")
		span("pay", 2, 1, otlpdata.KindClient, "bank")  // waits for it
		span("pay", 3, 1, otlpdata.KindClient, "stock") // which answers
		span("stock", 4, 3, otlpdata.KindServer, "")
	}
	c.endTrace()
	want := fmt.Sprint(map[callName]string{{operationID{"pay", "3 2"}, operationID{"pay", "2 1"}}: "bank"})
	if got := fmt.Sprint(c.waitingOn()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSlowest checks that a share of the traces is selected exactly, except for equal durations.
func TestSlowest(t *testing.T) {
	for _, c := range []struct {
		durations []uint64
		share     float64
		least     uint64
		n         int
	}{
		{nil, 0.05, 0, 0}, {[]uint64{7}, 0.05, 7, 1}, {[]uint64{3, 1, 2, 4}, 0.25, 4, 1}, {[]uint64{3, 1, 2, 4}, 0.26, 3, 2},
		{[]uint64{5, 5, 1, 5}, 0.25, 5, 3},
	} {
		if least, n := slowestOf(c.durations, slowestCount(c.share, len(c.durations))); least != c.least || n != c.n {
			t.Errorf("%v of %d: %d traces from %d on", c.share, c.durations, n, least)
		}
	}
}

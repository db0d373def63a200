package clickhouse_test

import (
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
)

// hostileTexts are texts that could end a literal, begin a comment or a parameter, or be cut.
func hostileTexts() []string {
	return []string{"", "a' OR '1'='1", `a\`, `a\'; DROP TABLE spans; --`, "a\x00b", "a`.`b", "a/*b*/\n{tenant:String} ? @p $1 %s", "a=b=c.d"}
}

// TestHostileTexts stores a span for each of several tenants, with the name of the tenant in all
// its texts, and checks that each tenant finds its own span by each of them and nothing else.
func TestHostileTexts(t *testing.T) {
	e := open(t).(storetest.Subject)
	all := hostileTexts()
	for i, text := range all {
		consume(t, e, hostileBatch(t, text, uint64(i+1)))
	}
	for i, text := range all {
		checkHostile(t, e, text, otlpdata.TraceID{15: byte(i + 1)})
	}
	d := tracestore.Deletion{Service: "svc " + all[1]}
	if got, err := as[tracestore.Deleter](t, e).Delete(t.Context(), all[1], d); err != nil || got.Spans != 1 {
		t.Fatalf("deleted %+v, %v; want 1 span", got, err)
	}
	for i, text := range all {
		want := 1
		if i == 1 {
			want = 0
		}
		if ids := idsOf(t, e, tracestore.Query{Tenant: text}); len(ids) != want {
			t.Errorf("tenant %q: %d traces after the deletion, want %d", text, len(ids), want)
		}
	}
}

// hostileBatch returns a span of a tenant with a text in all its places.
func hostileBatch(t *testing.T, text string, id uint64) *otlpdata.Batch {
	t.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "svc "+text)
	rs.Resource().Attributes().PutStr("res "+text, "value "+text)
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("scope " + text)
	s := ss.Spans().AppendEmpty()
	s.SetTraceID(pcommon.TraceID{15: byte(id)})
	s.SetSpanID(pcommon.SpanID{7: byte(id)})
	s.SetName("name " + text)
	s.SetStartTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	s.SetEndTimestamp(s.StartTimestamp() + 1000)
	s.Status().SetMessage("status " + text)
	s.Attributes().PutStr("key "+text, "value "+text)
	s.Attributes().PutInt("int "+text, int64(id))
	s.Events().AppendEmpty().SetName("event " + text)
	enc, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	b, err := otlpdata.FromOTLP(enc, otlpdata.Meta{Tenant: text, Received: time.Now()}, otlpdata.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// checkHostile checks what a tenant finds.
func checkHostile(t *testing.T, e storetest.Subject, text string, id otlpdata.TraceID) {
	t.Helper()
	ctx := t.Context()
	q := tracestore.NameQuery{}
	if names, _, err := e.Services(ctx, text, q); err != nil || !slices.Equal(names, []string{"svc " + text}) {
		t.Errorf("tenant %q: services %q, %v", text, names, err)
	}
	want := []tracestore.Operation{{Name: "name " + text, Kind: ""}}
	ops, _, err := e.Operations(ctx, text, "svc "+text, "", tracestore.NameQuery{Prefix: "name " + text})
	if err == nil && len(ops) == 1 {
		want[0].Kind = ops[0].Kind
	}
	if err != nil || !slices.Equal(ops, want) {
		t.Errorf("tenant %q: operations %q, %v", text, ops, err)
	}
	if keys, err := e.AttributeKeys(ctx, text, "key "+text, 0); err != nil || !slices.Equal(keys, []string{"key " + text}) {
		t.Errorf("tenant %q: keys %q, %v", text, keys, err)
	}
	values, err := e.AttributeValues(ctx, text, "key "+text, "value "+text, 0)
	if err != nil || !slices.Equal(values, []string{"value " + text}) {
		t.Errorf("tenant %q: values %q, %v", text, values, err)
	}
	for _, c := range hostileConditions(text) {
		if ids := idsOf(t, e, tracestore.Query{Tenant: text, Where: c}); !slices.Equal(ids, []otlpdata.TraceID{id}) {
			t.Errorf("tenant %q, condition %v: traces %v, want %s", text, c, ids, id)
		}
	}
	by := []tracestore.Field{{Place: tracestore.SpanAttribute, Key: "key " + text}, {Place: tracestore.Name}}
	a, err := as[tracestore.Aggregator](t, e).Aggregate(ctx, tracestore.Query{Tenant: text}, tracestore.Aggregation{
		Facets: tracestore.FacetQuery{Values: 5, Fields: by}, Groups: tracestore.GroupQuery{By: by, Limit: 5}})
	if err != nil || a.Spans != 1 || len(a.Facets.Facets) != 2 || len(a.Groups.Groups) != 1 {
		t.Errorf("tenant %q: aggregate %+v, %v", text, a, err)
	}
}

// hostileConditions returns conditions that hold for the span with a text.
func hostileConditions(text string) []tracestore.Expr {
	cond := func(p tracestore.Place, key, value string) tracestore.Expr {
		return tracestore.Cond{Field: tracestore.Field{Place: p, Key: key}, Value: tracestore.Text(value)}
	}
	return []tracestore.Expr{nil, cond(tracestore.Service, "", "svc "+text), cond(tracestore.Name, "", "name "+text),
		cond(tracestore.ScopeName, "", "scope "+text), cond(tracestore.StatusMessage, "", "status "+text),
		cond(tracestore.EventName, "", "event "+text), cond(tracestore.SpanAttribute, "key "+text, "value "+text),
		cond(tracestore.ResourceAttribute, "res "+text, "value "+text), cond(tracestore.AnyAttribute, "key "+text, "value "+text),
		tracestore.Cond{Field: tracestore.Field{Place: tracestore.SpanAttribute, Key: "int " + text}, Op: tracestore.Exists}}
}

// idsOf returns the traces that a query finds, newest first.
func idsOf(t *testing.T, e storetest.Subject, q tracestore.Query) (ids []otlpdata.TraceID) {
	t.Helper()
	found, err := e.Find(t.Context(), q, tracestore.WantIDs)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range found.All {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	return ids
}

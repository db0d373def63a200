package clickhouse_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

// TestAttributeHistory checks when services had attributes, before and after parts are merged, and
// that the store does not tell after a deletion.
func TestAttributeHistory(t *testing.T) {
	s := engine.Shared(t)
	database := s.Database(t)
	e := openOn(t, s, database, nil)
	hour := time.Now().Truncate(time.Hour).Add(-3 * time.Hour)
	send := func(id byte, at time.Time, service, pod string, keys ...string) {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", service)
		rs.Resource().Attributes().PutStr("k8s.pod.name", pod)
		rs.Resource().Attributes().PutStr("k8s.node.name", "node 7")
		rs.Resource().Attributes().PutInt("service.version", int64(id))
		rs.Resource().Attributes().PutBool("host.name", true) // whose value is not known
		sp := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		sp.SetTraceID(pcommon.TraceID{15: id})
		sp.SetSpanID(pcommon.SpanID{7: id})
		sp.SetStartTimestamp(pcommon.NewTimestampFromTime(at))
		sp.SetEndTimestamp(pcommon.NewTimestampFromTime(at))
		for i, key := range keys {
			switch i % 3 {
			case 0:
				sp.Attributes().PutStr(key, "text")
			case 1:
				sp.Attributes().PutStr(key, "text 1")
			default:
				sp.Attributes().PutInt(key, 1)
			}
		}
		consume(t, e, otlpdata.FromTraces(td, otlpdata.Meta{}))
	}
	send(1, hour.Add(time.Minute), "shop", "shop-1", "a", "b", "c")
	send(2, hour.Add(2*time.Minute), "shop", "shop-1", "b")
	send(3, hour.Add(61*time.Minute), "shop", "shop-2", "b")
	send(4, hour.Add(3*time.Minute), "cart", "cart-1")
	read := func(from, to time.Time) (lines []string, known bool) {
		known, missing, err := as[storequery.AttributeHistory](t, e).EachAttribute(t.Context(), "", from, to,
			func(a *storequery.AttributeTime) error {
				minute := func(ns uint64) int { return int(time.Unix(0, int64(ns)).Sub(hour) / time.Minute) }
				lines = append(lines, fmt.Sprintf("%s %s %s: %d from %d to %d", a.Service, a.Field.Key, a.Value, a.Spans, minute(a.First),
					minute(a.Last)))
				return nil
			})
		if err != nil || !missing.Complete() {
			t.Fatal(missing, err)
		}
		return lines, known
	}
	want := []string{
		"cart host.name : 1 from 3 to 3", "cart k8s.pod.name cart-1: 1 from 3 to 3", "cart service.version 4: 1 from 3 to 3",
		"shop host.name : 2 from 1 to 2", "shop host.name : 1 from 61 to 61",
		"shop k8s.pod.name shop-1: 2 from 1 to 2", "shop k8s.pod.name shop-2: 1 from 61 to 61",
		"shop service.version 1: 1 from 1 to 1", "shop service.version 2: 1 from 2 to 2", "shop service.version 3: 1 from 61 to 61",
		"shop a : 1 from 1 to 1", "shop b : 2 from 1 to 2", "shop b : 1 from 61 to 61", "shop c : 1 from 1 to 1",
	}
	for range 2 {
		if got, known := read(hour, hour.Add(2*time.Hour)); !known || !slices.Equal(got, want) {
			t.Errorf("got %t %q, want %q", known, got, want)
		}
		s.Exec(t, "OPTIMIZE TABLE `"+database+"`.attributes FINAL")
	}
	if got, known := read(hour.Add(time.Hour), hour.Add(2*time.Hour)); !known || len(got) != 4 {
		t.Errorf("in the second hour: %t %q", known, got)
	}
	if got, known := read(hour.Add(-2*time.Hour), hour.Add(-time.Minute)); !known || len(got) != 0 {
		t.Errorf("before: %t %q", known, got)
	}
	keys, err := as[tracestore.Catalog](t, e).AttributeKeys(t.Context(), "", "", 0)
	all := []string{"a", "b", "c", "host.name", "k8s.node.name", "k8s.pod.name", "service.name", "service.version"}
	if err != nil || !slices.Equal(keys, all) {
		t.Errorf("keys are %q, %v, want %q", keys, err, all)
	}
	if _, err := as[tracestore.Deleter](t, e).Delete(t.Context(), "", tracestore.Deletion{Traces: []otlpdata.TraceID{{15: 4}}}); err != nil {
		t.Fatal(err)
	}
	if got, known := read(hour, hour.Add(2*time.Hour)); known || len(got) > 0 {
		t.Errorf("after a deletion: %t %q", known, got)
	}
}

// TestFacetOfIDs checks the counts of an attribute with far more values than are counted: of a
// frequent value, and of all spans.
func TestFacetOfIDs(t *testing.T) {
	s := engine.Shared(t)
	database := s.Database(t)
	e := openOn(t, s, database, nil)
	const spans = 200_000 // more than are examined to find ids
	start := time.Now().Truncate(time.Hour)
	s.Exec(t, fmt.Sprintf("INSERT INTO `%s`.spans (tenant, service, start, day, name, status, duration, calls, trace_id, "+
		"`text.key`, `text.value`) SELECT '', 'shop', %d + number, toDate('%s'), 'op', if(number %% 100 = 0, 'error', 'unset'), 1, 1, "+
		"toFixedString(leftPad(toString(number), 16, '0'), 16), ['span.request.id', 'span.host'], "+
		"[if(number %% 10 = 0, 'none0', toString(number)), toString(number %% 3)] FROM numbers(%d)",
		database, start.UnixNano(), start.UTC().Format(time.DateOnly), spans))
	q := tracestore.Query{From: start, To: start.Add(time.Minute)}
	want := tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 3, Selection: &tracestore.Selection{
		Where: tracestore.Cond{Field: tracestore.Field{Place: tracestore.Status}, Op: tracestore.Eq, Value: tracestore.Text("error")}}}}
	got, err := as[tracestore.Aggregator](t, e).Aggregate(t.Context(), q, want)
	if err != nil || !got.Complete() {
		t.Fatal(got.Reasons, err)
	}
	found := 0
	for _, f := range got.Facets.Facets {
		switch f.Field.Key {
		case "request.id":
			found++
			first := tracestore.FacetValue{Text: "none0", Count: spans / 10, Selected: spans / 100, Score: f.Values[0].Score}
			if f.Spans != spans || f.Selected != spans/100 || f.Values[0] != first || f.Distinct > 10_000 ||
				f.Other+uint64(f.Distinct-1) != spans*9/10 {
				t.Errorf("ids: %+v", f)
			}
		case "host":
			found++
			if f.Spans != spans || f.Other != 0 || f.Distinct != 3 || len(f.Values) != 3 {
				t.Errorf("hosts: %+v", f)
			}
		}
	}
	if found != 2 {
		t.Errorf("facets: %+v", got.Facets)
	}
}

// TestFacetOfUsers checks an attribute with far more values than are counted. Frequent values are
// counted, also if they occur only in a small selection.
func TestFacetOfUsers(t *testing.T) {
	s := engine.Shared(t)
	database := s.Database(t)
	e := openOn(t, s, database, nil)
	const (
		spans, users = 400_000, 400 // each of the users has 0.1 % of the spans
		failed       = 12           // spans of a further user, all spans that failed
	)
	start := time.Now().Truncate(time.Hour)
	s.Exec(t, fmt.Sprintf("INSERT INTO `%s`.spans (tenant, service, start, day, name, status, duration, calls, trace_id, "+
		"`text.key`, `text.value`, `int.key`, `int.value`) SELECT '', 'shop', %d + number, toDate('%s'), 'op', "+
		"if(number %% 33333 = 7, 'error', 'unset'), 1, 1, toFixedString(leftPad(toString(number), 16, '0'), 16), ['span.user'], "+
		"[multiIf(number %% 33333 = 7, 'user0', number %% 5 < 2, concat('user', toString(1 + intDiv(number, 5) %% %d)), toString(number))], "+
		"['span.number'], [if(number %% 33333 = 7, -1, number)] FROM numbers(%d)",
		database, start.UnixNano(), start.UTC().Format(time.DateOnly), users, spans))
	q := tracestore.Query{From: start, To: start.Add(time.Minute)}
	user := tracestore.Field{Place: tracestore.SpanAttribute, Key: "user"}
	number := tracestore.Field{Place: tracestore.SpanAttribute, Key: "number"}
	want := tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 500, Fields: []tracestore.Field{user, number},
		Selection: &tracestore.Selection{
			Where: tracestore.Cond{Field: tracestore.Field{Place: tracestore.Status}, Op: tracestore.Eq, Value: tracestore.Text("error")}}}}
	got, err := as[tracestore.Aggregator](t, e).Aggregate(t.Context(), q, want)
	if err != nil || !got.Complete() {
		t.Fatal(got.Reasons, err)
	}
	for i, first := range []string{"user0", "-1"} {
		f := got.Facets.Facets[i]
		if v := f.Values[0]; v.Text != first || v.Count != failed || v.Selected != failed || v.Score < 0.99 {
			t.Errorf("%s: the first value is %+v", f.Field.Key, v)
		}
		if f.Spans != spans || f.Selected != failed || f.Distinct != storequery.MaxFacetDistinct || f.Other == 0 {
			t.Errorf("%s: %d spans, %d selected, %d values, %d others", f.Field.Key, f.Spans, f.Selected, f.Distinct, f.Other)
		}
	}
	frequent := 0
	for _, v := range got.Facets.Facets[0].Values {
		if v.Count > spans/users/3 {
			frequent++
		}
	}
	if frequent != users {
		t.Errorf("%d frequent values, want %d", frequent, users)
	}
}

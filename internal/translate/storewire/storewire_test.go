package storewire

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// overTheWire encodes a message and decodes it again.
func overTheWire[M proto.Message](t *testing.T, m M) M {
	t.Helper()
	b, err := proto.Marshal(m)
	into := m.ProtoReflect().New().Interface()
	if err == nil {
		err = proto.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatal(err)
	}
	return into.(M)
}

func cond(p tracestore.Place, key string, op tracestore.Op, l tracestore.Literal) tracestore.Cond {
	return tracestore.Cond{Field: tracestore.Field{Place: p, Key: key}, Op: op, Value: l}
}

// richExpr has every kind of condition, every place and every operator.
func richExpr() tracestore.Expr {
	all := tracestore.And{tracestore.Or{}, tracestore.Not{Expr: tracestore.And{}}, tracestore.And{}}
	for p := tracestore.AnyAttribute; p <= tracestore.RootName; p++ {
		all = append(all, cond(p, "\xff", tracestore.Ne, tracestore.Text("\xfe")))
	}
	for op := tracestore.Eq; op <= tracestore.Exists; op++ {
		all = append(all, tracestore.Or{cond(tracestore.Name, "", op, tracestore.Number(math.Inf(-1))), cond(tracestore.Name, "", op,
			tracestore.Text(""))})
	}
	return append(all, cond(tracestore.SpanAttribute, "k", tracestore.Like, tracestore.Pattern(regexp.MustCompile(`(?s)^a.*\d$`))))
}

func TestQuery(t *testing.T) {
	at := time.Unix(1_700_000_000, 5).UTC()
	for _, q := range []tracestore.Query{
		{},
		{Tenant: "acme", From: at, To: at.Add(time.Hour), Where: richExpr(), OfTrace: cond(tracestore.TraceDuration, "", tracestore.Gt,
			tracestore.Number(5)),
			Limit: 20, After: tracestore.Cursor{Start: math.MaxUint64, ID: otlpdata.TraceID{1, 15: 2}, Set: true},
			Budget: tracestore.Budget{Spans: 1, TraceSpans: 2}, Skip: map[otlpdata.TraceID]struct{}{{1}: {}, {15: 7}: {}}},
		{Limit: -1, From: time.Unix(-5, 0).UTC(), To: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), After: tracestore.Cursor{Set: true}},
	} {
		got, err := GetQuery(q.Tenant, overTheWire(t, PutQuery(&q)))
		if err != nil || !reflect.DeepEqual(got, q) {
			t.Errorf("%+v came back as %+v, %v", q, got, err)
		}
	}
	if _, err := GetQuery("", &store_v1.Query{Skip: make([]byte, 31)}); !errors.Is(err, ErrInvalid) {
		t.Errorf("part of a trace id: error %v, want %v", err, ErrInvalid)
	}
	q := tracestore.Query{Where: tracestore.Not{}}
	got, err := GetQuery("", overTheWire(t, PutQuery(&q)))
	if want := (tracestore.Not{Expr: tracestore.And{}}); err != nil || !reflect.DeepEqual(got.Where, tracestore.Expr(want)) {
		t.Errorf("Not of everything came back as %#v, %v", got.Where, err)
	}
}

// TestInvalidConditions checks that a condition that this version does not know is an error,
// because ignoring it would change the answer.
func TestInvalidConditions(t *testing.T) {
	deep := &store_v1.Expr{Expr: &store_v1.Expr_And{And: &store_v1.Exprs{}}}
	for range MaxDepth + 1 {
		deep = &store_v1.Expr{Expr: &store_v1.Expr_Not{Not: deep}}
	}
	newer := &store_v1.Expr{}
	newer.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
	condition := func(place store_v1.Place, op store_v1.Operator) *store_v1.Expr {
		return &store_v1.Expr{Expr: &store_v1.Expr_Condition{Condition: &store_v1.Condition{Field: &store_v1.Field{Place: place},
			Operator: op,
			Value:    &store_v1.Condition_Pattern{Pattern: []byte("(")}}}}
	}
	for name, e := range map[string]*store_v1.Expr{
		"nested more than":  deep,
		"unknown condition": newer,
		"unknown place":     condition(1000, store_v1.Operator_OPERATOR_EQ),
		"unknown operator":  condition(store_v1.Place_PLACE_NAME, 0),
		"missing closing )": condition(store_v1.Place_PLACE_NAME, store_v1.Operator_OPERATOR_LIKE),
	} {
		_, err := GetQuery("", &store_v1.Query{Where: e})
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want %q", err, name)
		}
	}
}

// TestLimitsOfConditions checks that the limits count all conditions of a request, and that
// regular expressions are not compiled beyond them.
func TestLimitsOfConditions(t *testing.T) {
	all := func(parts ...*store_v1.Expr) *store_v1.Expr {
		return &store_v1.Expr{Expr: &store_v1.Expr_Or{Or: &store_v1.Exprs{Parts: parts}}}
	}
	like := func(pattern string) *store_v1.Expr {
		return &store_v1.Expr{Expr: &store_v1.Expr_Condition{Condition: &store_v1.Condition{
			Field: &store_v1.Field{Place: store_v1.Place_PLACE_NAME}, Operator: store_v1.Operator_OPERATOR_LIKE,
			Value: &store_v1.Condition_Pattern{Pattern: []byte(pattern)}}}}
	}
	half := all(slices.Repeat([]*store_v1.Expr{all()}, MaxParts/2-1)...)
	long := like("[" + strings.Repeat("a", MaxPatterns/2-2) + "]")
	for name, c := range map[string]struct{ where, more *store_v1.Expr }{
		"more than 8192 parts":  {half, all(half)},
		"more than 65536 bytes": {all(long, long), like("a")},
		"more than 8192 steps":  {like("(?:a?b?){1000}"), like("(?:c?d?){1000}")},
	} {
		if _, err := GetQuery("", &store_v1.Query{Where: c.where}); err != nil {
			t.Errorf("%s: within the limit: %v", name, err)
		}
		_, _, aggregated := GetAggregation("", &store_v1.AggregateRequest{Query: &store_v1.Query{Where: c.where},
			Facets: &store_v1.FacetQuery{Selection: &store_v1.Selection{Where: c.more}}})
		_, searched := GetQuery("", &store_v1.Query{Where: c.where, OfTrace: c.more})
		for _, err := range []error{aggregated, searched} {
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), name) {
				t.Errorf("error %v, want %q", err, name)
			}
		}
	}
}

func histogram(durations ...uint64) (h tracestore.Histogram) {
	for _, d := range durations {
		h.Observe(d)
	}
	return h
}

// missing returns a reason of each kind.
func missing() (r tracestore.Reasons) {
	for kind := tracestore.ReasonOther; kind <= tracestore.ReasonUnavailable; kind++ {
		r.Add(tracestore.Reason{Kind: kind, Store: []string{"", "\xff"}[kind%2], Text: fmt.Sprintf("\xfe %d", kind)})
	}
	return r
}

// TestReasons checks that an answer with reasons that this program does not understand is not
// complete.
func TestReasons(t *testing.T) {
	if known := len(store_v1.ReasonKind_name); known != len(missing()) {
		t.Errorf("the protocol has %d kinds, package tracestore has %d", known, len(missing()))
	}
	newer := &store_v1.GraphResponse{Reasons: []*store_v1.Reason{{Kind: 99, Text: []byte("new")}, {}}}
	want := tracestore.Reasons{{Text: "new"}, {Text: "the answer is incomplete"}}
	if got := GetGraph(overTheWire(t, newer)).Reasons; !reflect.DeepEqual(got, want) {
		t.Errorf("reasons came back as %+v, want %+v", got, want)
	}
	damage := &tracestore.DamagedError{Reasons: missing(), Err: errors.New("why")}
	if got := GetDamage(overTheWire(t, PutDamage(damage))); !reflect.DeepEqual(got, damage) {
		t.Errorf("damage came back as %+v", got)
	}
}

func pathProfile() *tracestore.PathProfile {
	few, many := tracestore.PathCounts{Traces: 1, Calls: 2, SelfTime: 3, SelfSquares: 9, CallSquares: 4},
		tracestore.PathCounts{Traces: 5, Calls: 6, Errors: 7, SelfTime: math.MaxUint64, SelfSquares: math.MaxFloat64, CallSquares: 36}
	return &tracestore.PathProfile{Scanned: 1, Reasons: missing(),
		Paths: []tracestore.CallPath{{Parent: -1, Service: "a", Name: "b", Kind: 5, Selected: few},
			{Service: "\xff", Name: "c", Selected: few, Rest: many}, {Parent: 1, Service: "a", Name: "b", Kind: -1}},
		Operations: []tracestore.OperationProfile{{Service: "a", Name: "b", Rest: many}, {Service: "\xff", Name: "c", Selected: few}},
		Selected: tracestore.PathSet{Traces: 2, Failed: 1, Spans: 5, Time: 6, TimeSquares: 7.5, Share: 0.25,
			IDs: []otlpdata.TraceID{{1}, {2, 15: 3}}},
		Rest: tracestore.PathSet{Share: 1}}
}

// TestInvalidPathProfiles checks that references are within the answer.
func TestInvalidPathProfiles(t *testing.T) {
	for name, m := range map[string]*store_v1.PathProfileResponse{
		"parent after the path":  {Operations: []*store_v1.PathOperation{{}}, Paths: []*store_v1.CallPath{{Parent: 1}}},
		"negative parent":        {Operations: []*store_v1.PathOperation{{}}, Paths: []*store_v1.CallPath{{Parent: -1}}},
		"unknown operation":      {Paths: []*store_v1.CallPath{{}}},
		"part of a trace id":     {Rest: &store_v1.PathSet{Ids: make([]byte, 17)}},
		"part of a selected one": {Selected: &store_v1.PathSet{Ids: make([]byte, 15)}},
	} {
		if _, err := GetPathProfile(m); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: error %v, want %v", name, err, ErrInvalid)
		}
	}
}

// TestAnswers checks that answers come back unchanged.
func TestAnswers(t *testing.T) {
	metrics := tracestore.MetricsAnswer{Step: 60, Reasons: missing(), Series: []tracestore.MetricSeries{{Service: "\xff",
		Operation: "b"}}}
	for i := range uint64(3*pointsPerPart + 1) {
		metrics.Series[0].Points = append(metrics.Series[0].Points,
			tracestore.MetricPoint{Start: i, Calls: i, Errors: 1, Durations: histogram(i, i*i, math.MaxUint64)})
	}
	metrics.Series = append(metrics.Series, tracestore.MetricSeries{Service: "c", Points: []tracestore.MetricPoint{{Start: 1,
		Durations: histogram(0)}}})
	if got, err := GetMetrics(overTheWire(t, PutMetrics(&metrics))); err != nil || !reflect.DeepEqual(got, metrics) {
		t.Errorf("metrics came back as %+v, %v", got, err)
	}
	edges := tracestore.EdgeGraph{Reasons: missing(), Edges: []tracestore.CallEdge{{Parent: "\xff", Child: "a", Calls: 2, Errors: 1},
		{Parent: "a", Child: "b", Peer: true, Connection: tracestore.ConnectionHTTP, Calls: 3, Durations: histogram(3, 700, math.MaxUint64)}}}
	if got, err := GetEdges(overTheWire(t, PutEdges(&edges))); err != nil || !reflect.DeepEqual(got, edges) {
		t.Errorf("edges came back as %+v, %v", got, err)
	}
	newer := &store_v1.EdgesResponse{Edges: []*store_v1.CallEdge{{Connection: 99}}}
	if got, err := GetEdges(newer); err != nil || got.Edges[0].Connection != tracestore.ConnectionUnknown {
		t.Errorf("unknown connection came back as %+v, %v", got, err)
	}
	if _, err := GetEdges(&store_v1.EdgesResponse{Edges: []*store_v1.CallEdge{{Counts: []uint64{0}}}}); !errors.Is(err, ErrInvalid) {
		t.Errorf("invalid durations: error %v, want %v", err, ErrInvalid)
	}
	baselines := tracestore.BaselineAnswer{Reasons: missing(),
		Durations: []tracestore.Histogram{histogram(3, 700), {}, histogram(math.MaxUint64)}}
	if got, err := GetBaselines(overTheWire(t, PutBaselines(&baselines)), 3); err != nil || !reflect.DeepEqual(got, baselines) {
		t.Errorf("baselines came back as %+v, %v", got, err)
	}
	if _, err := GetBaselines(PutBaselines(&baselines), 2); !errors.Is(err, ErrInvalid) {
		t.Errorf("answer for another number of operations: error %v, want %v", err, ErrInvalid)
	}
	if got, err := GetPathProfile(overTheWire(t, PutPathProfile(pathProfile()))); err != nil || !reflect.DeepEqual(&got, pathProfile()) {
		t.Errorf("path profile came back as %+v, %v", got, err)
	}
	aggregate := tracestore.Aggregate{Spans: 1, Errors: 2, Share: 0.1, Scanned: 3, Reasons: missing(),
		Heatmap: &tracestore.Heatmap{Step: 9, Share: 1},
		Facets: &tracestore.Facets{Spans: 4, Selected: 5, Share: 0.5, Omitted: 6,
			Facets: []tracestore.Facet{{Field: tracestore.Field{Place: tracestore.Kind},
				Spans: 7, Selected: 8, Distinct: 9, Other: 10, Score: -0.5, Values: []tracestore.FacetValue{{Text: "\xff", Count: 1,
					Selected: 2, Score: 0.25}}}}},
		Groups: &tracestore.Groups{All: tracestore.Group{Errors: 3, Durations: histogram(1, 2, 3)}, Distinct: 4, Other: 5, Share: 0.25,
			Groups: []tracestore.Group{{Values: [2]tracestore.GroupValue{{Text: "\xff", Present: true}, {}}, Errors: 1, Durations: histogram(7)}}},
		Exemplars: []tracestore.Exemplar{{TraceID: otlpdata.TraceID{1}, SpanID: otlpdata.SpanID{2}, Start: 3, Duration: 4, Service: "s",
			Name: "n", Failed: true}}}
	for i := range uint64(2*cellsPerPart + 1) {
		aggregate.Heatmap.Cells = append(aggregate.Heatmap.Cells, tracestore.HeatCell{Start: i, Bucket: int(i) % tracestore.Buckets,
			Count: i, Errors: 1})
	}
	for _, a := range []tracestore.Aggregate{aggregate, {}, {Heatmap: &tracestore.Heatmap{}, Facets: &tracestore.Facets{}}} {
		if got, err := GetAggregate(overTheWire(t, PutAggregate(&a))); err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("aggregate came back as %+v, %v", got, err)
		}
	}
	g := tracestore.Graph{Reasons: missing(), Edges: []tracestore.Edge{{Parent: "\xff", Child: "b", Messaging: true, Calls: 1, Errors: 2,
		Duration: math.MaxUint64}}}
	if got := GetGraph(overTheWire(t, PutGraph(&g))); !reflect.DeepEqual(got, g) {
		t.Errorf("graph came back as %+v", got)
	}
	r := tracestore.Result{ID: otlpdata.TraceID{1}, Start: 2, Summary: &tracestore.Summary{ID: otlpdata.TraceID{1}, RootService: "\xff",
		RootName: "n",
		Start:    1, End: 2, Spans: 3, Errors: 4, Orphans: 5, Root: otlpdata.SpanID{6},
		Services: []tracestore.ServiceSummary{{Name: "s", Spans: 6, Errors: 7}}}}
	if got, err := GetFound(overTheWire(t, PutFound(&r))); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("result came back as %+v, %v", got, err)
	}
	o := tracestore.Outcome{Reasons: missing(), Scanned: 5, Next: tracestore.Cursor{Start: 7, Set: true}}
	if got, err := GetOutcome(overTheWire(t, PutOutcome(&o, true))); err != nil || !reflect.DeepEqual(got, o) {
		t.Errorf("outcome came back as %+v, %v", got, err)
	}
}

func TestRequests(t *testing.T) {
	at := time.Unix(1_700_000_000, 5).UTC()
	q := tracestore.Query{From: at}
	edges := tracestore.EdgeQuery{From: at, To: at, Service: "\xff"}
	if got := GetEdgeQuery(overTheWire(t, PutEdgeQuery(&edges))); got != edges {
		t.Errorf("query for edges came back as %+v", got)
	}
	a := tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: time.Second}, Exemplars: 5, Facets: tracestore.FacetQuery{Values: 7,
		All: true, Fields: []tracestore.Field{{Place: tracestore.SpanAttribute, Key: "k"}}, Selection: &tracestore.Selection{To: at,
			Where: richExpr()}},
		Groups: tracestore.GroupQuery{By: []tracestore.Field{{Place: tracestore.Service}, {Key: "k"}}, Limit: 9, Sort: tracestore.GroupsByTime,
			All: true}}
	gotQuery, got, err := GetAggregation("", overTheWire(t, PutAggregation(&q, &a)))
	if err != nil || !reflect.DeepEqual(got, a) || !reflect.DeepEqual(gotQuery, q) {
		t.Errorf("aggregation came back as %+v of %+v, %v", got, gotQuery, err)
	}
	d := tracestore.Deletion{Traces: []otlpdata.TraceID{{1}, {2}}, Service: "\xff", From: at}
	if got, err := GetDeletion(overTheWire(t, PutDeletion(&d))); err != nil || !reflect.DeepEqual(got, d) {
		t.Errorf("deletion came back as %+v, %v", got, err)
	}
	m := tracestore.MetricsQuery{Services: []string{"\xff"}, Kinds: []string{"", "server"}, ByOperation: true, To: at, Step: time.Minute}
	if got := GetMetricsQuery(overTheWire(t, PutMetricsQuery(&m))); !reflect.DeepEqual(got, m) {
		t.Errorf("metrics query came back as %+v", got)
	}
	refs := []tracestore.TraceRef{{ID: otlpdata.TraceID{1}}, {ID: otlpdata.TraceID{2}, From: at, To: at}}
	if got, err := GetRefs(overTheWire(t, PutRefs(refs))); err != nil || !reflect.DeepEqual(got, refs) {
		t.Errorf("references came back as %+v, %v", got, err)
	}
	for w := tracestore.WantIDs; w <= tracestore.WantFull; w++ {
		if got, err := GetWant(PutWant(w)); err != nil || got != w {
			t.Errorf("want %d came back as %d, %v", w, got, err)
		}
	}
}

func TestOutline(t *testing.T) {
	var all []tracestore.SummarySpan
	var w OutlineWriter
	var r OutlineReader
	for i := range 10 {
		spans := []tracestore.SummarySpan{{ID: otlpdata.SpanID{byte(i)}, Parent: otlpdata.SpanID{7: 1}, Start: math.MaxUint64, Duration: 3,
			Service: strings.Repeat("s", i%3), Name: "\xff", Kind: int32(i - 2), Failed: i%2 == 0, Reversed: i%3 == 0, Host: uint32(i)},
			{Name: "b", Extras: &tracestore.SpanExtras{Links: 7, Events: []tracestore.SpanEvent{{Time: math.MaxUint64, Name: "e"}}}},
			{Name: "b", Extras: &tracestore.SpanExtras{Peer: "\xfe"}}}
		all = append(all, spans...)
		if err := r.Get(overTheWire(t, w.Put(spans))); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(r.Spans, all) || r.TextBytes < 30+20*40 || len(r.texts) > 6 {
		t.Errorf("outline came back as %+v, %d bytes of texts, %d texts", r.Spans, r.TextBytes, len(r.texts))
	}
}

// TestOutlineOfOlderServers checks that outlines without the newer fields are accepted, and that
// extras that do not fit are not.
func TestOutlineOfOlderServers(t *testing.T) {
	span := tracestore.SummarySpan{ID: otlpdata.SpanID{1}, Name: "a", Reversed: true, Host: 3, Extras: &tracestore.SpanExtras{Links: 1}}
	var w OutlineWriter
	m := w.Put([]tracestore.SummarySpan{span})
	m.Reversed, m.Host, m.Extras = nil, nil, nil
	var r OutlineReader
	if err := r.Get(m); err != nil || len(r.Spans) != 1 || r.Spans[0].Reversed || r.Spans[0].Host != 0 || r.Spans[0].Extras != nil {
		t.Errorf("%+v, %v", r.Spans, err)
	}
	for _, x := range []*store_v1.OutlineExtras{{Span: 1}, {EventTime: []uint64{1}}, {EventTime: []uint64{1}, EventName: []uint32{9}}} {
		m.Extras = []*store_v1.OutlineExtras{x}
		if err := new(OutlineReader).Get(m); !errors.Is(err, ErrInvalid) {
			t.Errorf("extras %v: %v", x, err)
		}
	}
	for range 2 {
		m.Host = append(m.Host, 1)
	}
	m.Extras = nil
	if err := new(OutlineReader).Get(m); !errors.Is(err, ErrInvalid) {
		t.Errorf("too many hosts: %v", err)
	}
}

// TestSplit checks that parts have a limited size and that their concatenation is the message.
func TestSplit(t *testing.T) {
	m := PutNames([]string{"a", strings.Repeat("b", 100), "c", "", "d"}, true)
	for _, limit := range []int{1, 10, 50, 1000} {
		var joined store_v1.NamesResponse
		parts := 0
		err := Split(m, limit, func(part []byte) error {
			if _, _, n := protowire.ConsumeField(part); len(part) > limit && n != len(part) {
				t.Errorf("part of %d bytes exceeds %d", len(part), limit)
			}
			parts++
			return Join(&joined, part)
		})
		if err != nil || !proto.Equal(&joined, m) || limit == 1000 != (parts == 1) {
			t.Errorf("limit %d: %d parts, %v, %v", limit, parts, &joined, err)
		}
	}
	failed := errors.New("failed")
	if err := Split(&store_v1.NamesResponse{}, 10, func(part []byte) error {
		if len(part) > 0 {
			t.Errorf("part %x of an empty message", part)
		}
		return failed
	}); !errors.Is(err, failed) {
		t.Errorf("an empty message has no part: %v", err)
	}
}

// FuzzRequests decodes requests and checks that those that are valid survive another round.
func FuzzRequests(f *testing.F) {
	q := tracestore.Query{Where: richExpr(), After: tracestore.Cursor{Set: true}}
	a := tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 1, Selection: &tracestore.Selection{Where: richExpr()}}}
	for _, m := range []proto.Message{PutAggregation(&q, &a), PutDeletion(&tracestore.Deletion{Traces: []otlpdata.TraceID{{1}}}),
		PutRefs([]tracestore.TraceRef{{ID: otlpdata.TraceID{1}, From: time.Unix(1, 2)}}),
		PutMetricsQuery(&tracestore.MetricsQuery{Services: []string{"a"}})} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m store_v1.AggregateRequest
		if proto.Unmarshal(b, &m) == nil {
			if q, a, err := GetAggregation("", &m); err == nil {
				tracestore.Match(q.Where, tracestore.Span{Resource: &otlpdata.Resource{}, Scope: &otlpdata.Scope{}, Span: &otlpdata.Span{}})
				first := PutAggregation(&q, &a)
				q, a, err := GetAggregation("", first)
				if err != nil || !proto.Equal(PutAggregation(&q, &a), first) {
					t.Errorf("%v changed: %v", first, err)
				}
			}
		}
		var d store_v1.DeleteRequest
		if proto.Unmarshal(b, &d) == nil {
			if d, err := GetDeletion(&d); err == nil {
				_ = d.Check()
			}
		}
		var r store_v1.TracesRequest
		if proto.Unmarshal(b, &r) == nil {
			_, _ = GetRefs(&r)
		}
		var paths store_v1.PathProfileRequest
		if proto.Unmarshal(b, &paths) == nil {
			if q, sel, o, err := GetPathQuery("", &paths); err == nil {
				PutPathQuery(&q, &sel, o)
			}
		}
		var p store_v1.MetricsRequest
		if proto.Unmarshal(b, &p) == nil {
			q := GetMetricsQuery(&p)
			q.Window()
		}
	})
}

// FuzzAnswers decodes answers, in one part and in several, and checks that those that are valid
// survive another round.
func FuzzAnswers(f *testing.F) {
	a := tracestore.Aggregate{Heatmap: &tracestore.Heatmap{Cells: []tracestore.HeatCell{{Bucket: 1, Count: 2}}},
		Facets:    &tracestore.Facets{},
		Exemplars: []tracestore.Exemplar{{Name: "a"}}}
	metrics := tracestore.MetricsAnswer{Series: []tracestore.MetricSeries{{Points: []tracestore.MetricPoint{{Calls: 2,
		Durations: histogram(5, 100)}}}}}
	baselines := tracestore.BaselineAnswer{Durations: []tracestore.Histogram{histogram(5, 100)}}
	var w OutlineWriter
	for _, m := range []proto.Message{PutAggregate(&a), PutMetrics(&metrics), PutBaselines(&baselines), PutPathProfile(pathProfile()),
		PutEdges(&tracestore.EdgeGraph{Edges: []tracestore.CallEdge{{Parent: "a", Durations: histogram(5, 100)}}}),
		w.Put([]tracestore.SummarySpan{{Name: "a"},
			{Service: "b", Extras: &tracestore.SpanExtras{Peer: "c", Events: []tracestore.SpanEvent{{Name: "d"}}}}}),
		&store_v1.FindResponse{Traces: []*store_v1.FoundTrace{PutFound(&tracestore.Result{Summary: &tracestore.Summary{}})},
			Outcome: PutOutcome(&tracestore.Outcome{}, true)}} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m store_v1.AggregateResponse
		if proto.Unmarshal(b, &m) == nil {
			var joined store_v1.AggregateResponse
			if err := Split(&m, 20, func(part []byte) error { return Join(&joined, part) }); err != nil || !proto.Equal(&joined, &m) {
				t.Errorf("%v became %v: %v", &m, &joined, err)
			}
			if a, err := GetAggregate(&m); err == nil {
				if again, err := GetAggregate(PutAggregate(&a)); err != nil || !proto.Equal(PutAggregate(&again), PutAggregate(&a)) {
					t.Errorf("%+v changed: %v", a, err)
				}
			}
		}
		var metrics store_v1.MetricsResponse
		if proto.Unmarshal(b, &metrics) == nil {
			if a, err := GetMetrics(&metrics); err == nil {
				for _, s := range a.Series {
					for i := range s.Points {
						s.Points[i].Durations.Quantile(0.5)
						s.Points[i].Durations.Observe(uint64(len(b)))
					}
				}
			}
		}
		var baselines store_v1.BaselinesResponse
		if proto.Unmarshal(b, &baselines) == nil {
			if a, err := GetBaselines(&baselines, len(baselines.GetDuration())); err == nil {
				for i := range a.Durations {
					a.Durations[i].Observe(uint64(len(b)))
				}
			}
		}
		var edges store_v1.EdgesResponse
		if proto.Unmarshal(b, &edges) == nil {
			if g, err := GetEdges(&edges); err == nil {
				for i := range g.Edges {
					g.Edges[i].Durations.Observe(uint64(len(b)))
				}
			}
		}
		var operations store_v1.BaselinesRequest
		if proto.Unmarshal(b, &operations) == nil {
			if q, err := GetBaselineQuery(&operations); err == nil && len(q.Operations) > len(b) {
				t.Errorf("%d bytes became %d operations", len(b), len(q.Operations))
			}
		}
		var profile store_v1.PathProfileResponse
		if proto.Unmarshal(b, &profile) == nil {
			if p, err := GetPathProfile(&profile); err == nil {
				if again, err := GetPathProfile(PutPathProfile(&p)); err != nil || len(again.Paths) != len(p.Paths) {
					t.Errorf("%+v changed: %v", p, err)
				}
			}
		}
		var outline store_v1.OutlineResponse
		if proto.Unmarshal(b, &outline) == nil {
			var r OutlineReader
			if r.Get(&outline) == nil && len(r.Spans) > len(b) {
				t.Errorf("%d bytes became %d spans", len(b), len(r.Spans))
			}
		}
		var found store_v1.FindResponse
		if proto.Unmarshal(b, &found) == nil {
			for _, one := range found.GetTraces() {
				_, _ = GetFound(one)
			}
			_, _ = GetOutcome(found.GetOutcome())
		}
	})
}

// TestUnknownFields checks that fields of a later version are ignored.
func TestUnknownFields(t *testing.T) {
	later := protowire.AppendString(protowire.AppendTag(nil, 500, protowire.BytesType), "later")
	m := PutNames([]string{"a"}, false)
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var joined store_v1.NamesResponse
	if err := Join(&joined, bytes.Join([][]byte{later, b, later}, nil)); err != nil || len(GetTexts(joined.Names)) != 1 {
		t.Errorf("%v, %v", &joined, err)
	}
	if err := Join(&joined, []byte{0xff}); !errors.Is(err, ErrInvalid) {
		t.Errorf("malformed message: %v", err)
	}
}

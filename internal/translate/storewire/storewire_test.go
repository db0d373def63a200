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

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func cond(p tracestore.Place, key string, op tracestore.Op, l tracestore.Literal) tracestore.Cond {
	return tracestore.Cond{Field: tracestore.Field{Place: p, Key: key}, Op: op, Value: l}
}

// richExpr has every kind of condition, every place and every operator.
func richExpr() tracestore.Expr {
	all := tracestore.And{tracestore.Or{}, tracestore.Not{Expr: tracestore.And{}}, tracestore.Not{}, nil, tracestore.And{}}
	for p := tracestore.AnyAttribute; p <= tracestore.RootName; p++ {
		all = append(all, cond(p, "\xff", tracestore.Ne, tracestore.Text("\xfe")))
	}
	for op := tracestore.Eq; op <= tracestore.Exists; op++ {
		all = append(all, tracestore.Or{cond(tracestore.Name, "", op, tracestore.Number(math.Inf(-1))), cond(tracestore.Name, "", op,
			tracestore.Text(""))})
	}
	for _, v := range []otlpdata.Value{otlpdata.StringValue("\xff"), otlpdata.BoolValue(true), otlpdata.BoolValue(false),
		otlpdata.IntValue(math.MinInt64), otlpdata.IntValue(math.MaxInt64), otlpdata.DoubleValue(-0.5)} {
		all = append(all, tracestore.Compare{Op: tracestore.Gt, Left: tracestore.Constant{Value: v}, Right: tracestore.Arithmetic{Op: '%',
			Left: tracestore.Field{Place: tracestore.SpanAttribute, Key: "\xff", Parent: true}, Right: tracestore.Truth{Expr: tracestore.And{}}}})
	}
	all = append(all, tracestore.Compare{Op: tracestore.Exists, Left: tracestore.Field{Place: tracestore.NestedLeft}})
	return append(all, cond(tracestore.SpanAttribute, "k", tracestore.Like, tracestore.Pattern(regexp.MustCompile(`(?s)^a.*\d$`))),
		cond(tracestore.SpanAttribute, "k", tracestore.Eq, tracestore.Bool(true)))
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

// wire encodes and decodes values of one type.
type wire struct {
	encode func() ([]byte, error)
	anew   func(value any) ([]byte, error) // encode for another value
	decode func(d *Decoder) (value any, err error)
	value  any
}

func of[T any](v T) wire {
	return wire{
		encode: func() ([]byte, error) { return Encode(&v) },
		anew: func(value any) ([]byte, error) {
			v := value.(T)
			return Encode(&v)
		},
		decode: func(d *Decoder) (any, error) {
			var v T
			err := Only(d, &v)
			return v, err
		},
		value: v,
	}
}

// questions returns a question of each type.
func questions() []wire {
	at := time.Unix(1_700_000_000, 5).UTC()
	id, other := otlpdata.TraceID{1, 15: 2}, otlpdata.TraceID{15: 7}
	q := tracestore.Query{From: at, To: at.Add(time.Hour), Where: richExpr(), Limit: 20,
		OfTrace: cond(tracestore.TraceDuration, "", tracestore.Gt, tracestore.Number(5)),
		After:   tracestore.Cursor{Start: math.MaxUint64, ID: id, Set: true},
		Budget:  tracestore.Budget{Spans: 1, TraceSpans: 2}, Skip: map[otlpdata.TraceID]struct{}{id: {}, other: {}}}
	selection := tracestore.Selection{To: at, Where: richExpr()}
	return []wire{
		of(Hello{Version: 1}), of(Find{}), of(Find{Query: q, Want: tracestore.WantFull}),
		of(Find{Query: tracestore.Query{Limit: -1, From: time.Unix(-5, 0).UTC(), To: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
			After: tracestore.Cursor{Set: true}}}),
		of(Traces{Refs: []tracestore.TraceRef{{ID: id}, {ID: other, From: at, To: at}}}),
		of(SelectSpans{Trace: id, Spans: []otlpdata.SpanID{{1}, {7: 9}}}),
		of(Services{Names: tracestore.NameQuery{Prefix: "\xff", Limit: 3}}), of(Operations{Service: "a", Kind: "server"}),
		of(Attributes{Key: "k", Prefix: "p", Limit: 1}),
		of(Aggregate{Query: q, What: tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: time.Second}, Exemplars: 5,
			Facets: tracestore.FacetQuery{Values: 7, All: true, Selection: &selection,
				Fields: []tracestore.Field{{Place: tracestore.SpanAttribute, Key: "k"}}},
			Groups: tracestore.GroupQuery{By: []tracestore.Field{{Place: tracestore.Service}, {Key: "k"}}, Limit: 9,
				Sort: tracestore.GroupsByTime, All: true, Step: time.Minute, Measure: tracestore.MeasureDistribution, Adjusted: true,
				Of: tracestore.Field{Place: tracestore.Duration}}}}),
		of(ProfilePaths{Query: q, Selection: selection, Options: tracestore.PathOptions{Traces: 5}}),
		of(Window{From: at}), of(tracestore.EdgeQuery{From: at, To: at, Service: "\xff"}),
		of(tracestore.MetricsQuery{Services: []string{"\xff"}, Kinds: []string{"", "server"}, ByOperation: true, To: at, Step: time.Minute}),
		of(tracestore.BaselineQuery{Operations: []tracestore.OperationKey{{Service: "a", Operation: "b", Kind: "server"}, {}}, From: at}),
		of(FindSpans{Trace: id, Condition: tracestore.SpanCondition{Where: richExpr(), Text: "\xff"}}),
		of(Outline{Trace: id, Limit: 3}), of(Trace{ID: id}), of(Usage{}), of(Follow{Capacity: 1 << 40}),
		of(tracestore.Deletion{Traces: []otlpdata.TraceID{{1}, {2}}, Service: "\xff", From: at}),
	}
}

// answers returns a response of each type.
func answers() []wire {
	at := time.Unix(1_700_000_000, 5).UTC()
	few := tracestore.PathCounts{Traces: 1, Calls: 2, SelfTime: 3, SelfSquares: 9, CallSquares: 4}
	many := tracestore.PathCounts{Traces: 5, Calls: 6, Errors: 7, SelfTime: math.MaxUint64, SelfSquares: math.MaxFloat64, CallSquares: 36}
	aggregate := tracestore.Aggregate{Spans: 1, Errors: 2, Share: 0.1, RelativeError: 0.5, Scanned: 3, Reasons: missing(),
		Heatmap: &tracestore.Heatmap{Step: 9, Share: 1, Cells: []tracestore.HeatCell{{Start: 1, Bucket: tracestore.HeatBuckets - 1, Count: 4}}},
		Facets: &tracestore.Facets{Spans: 4, Selected: 5, Share: 0.5, Omitted: 6, Facets: []tracestore.Facet{
			{Field: tracestore.Field{Place: tracestore.Kind}, Spans: 7, Selected: 8, Distinct: 9, Other: 10, Score: -0.5,
				Values: []tracestore.FacetValue{{Text: "\xff", Count: 1, Selected: 2, Score: math.Inf(-1)}}}}},
		Groups: &tracestore.Groups{All: tracestore.Group{Errors: 3, Durations: histogram(1, 2, 3)}, Distinct: 4, Other: 5, Share: 0.25,
			Groups: []tracestore.Group{{Values: [tracestore.MaxGroupFields]tracestore.GroupValue{{Text: "\xff", Present: true}, {}}, Errors: 1,
				Durations: histogram(7), Parts: []uint64{0, 1}, Numbers: []tracestore.Numbers{{},
					{Count: 1, Sum: -0.5, Min: -0.5, Max: -0.5, Buckets: []tracestore.NumberBucket{{Bucket: -34_000, Count: 1}}}}}}},
		Exemplars: []tracestore.Exemplar{{TraceID: otlpdata.TraceID{1}, SpanID: otlpdata.SpanID{2}, Start: 3, Duration: 4, Service: "s",
			Name: "n", Failed: true}}}
	result := tracestore.Result{ID: otlpdata.TraceID{1}, Start: 2, Summary: &tracestore.Summary{ID: otlpdata.TraceID{1}, RootService: "\xff",
		RootName: "n", Start: 1, End: 2, Spans: 3, Errors: 4, Orphans: 5, Root: otlpdata.SpanID{6},
		Services: []tracestore.ServiceSummary{{Name: "s", Spans: 6, Errors: 7}}}}
	return []wire{
		of(Capabilities{Version: 1, Interfaces: []string{"Metrics", "Peers"}}), of(TracePart{ID: otlpdata.TraceID{1}, Spans: []byte{1, 2}}),
		of(FoundPart{Trace: &result, Complete: true, Scanned: 9}), of(FoundPart{Spans: []byte{1}}),
		of(FoundPart{End: &FindEnd{Limited: true, Outcome: tracestore.Outcome{Reasons: missing(), Scanned: 5,
			Next: tracestore.Cursor{Start: 7, Set: true}}}}),
		of(Names{Names: []string{"a", "", "a", "\xff"}, More: true}),
		of(OperationList{Operations: []tracestore.Operation{{Name: "a", Kind: "server"}}}), of([]string{"a"}),
		of(aggregate), of(tracestore.Aggregate{}), of(tracestore.Aggregate{Heatmap: &tracestore.Heatmap{}, Facets: &tracestore.Facets{}}),
		of(tracestore.PathProfile{Scanned: 1, Reasons: missing(),
			Paths: []tracestore.CallPath{{Parent: -1, Service: "a", Name: "b", Kind: 5, Selected: few},
				{Service: "\xff", Name: "c", Selected: few, Rest: many}, {Parent: 1, Service: "a", Name: "b", Kind: -1}},
			Operations: []tracestore.OperationProfile{{Service: "a", Name: "b", Rest: many}, {Service: "\xff", Name: "c", Selected: few}},
			Selected: tracestore.PathSet{Traces: 2, Failed: 1, Spans: 5, Time: 6, TimeSquares: 7.5, Share: 0.25,
				IDs: []otlpdata.TraceID{{1}, {2, 15: 3}}},
			Rest: tracestore.PathSet{Share: 1}}),
		of(tracestore.Graph{Reasons: missing(), Edges: []tracestore.Edge{{Parent: "\xff", Child: "b", Messaging: true, Calls: 1, Errors: 2,
			Duration: math.MaxUint64}}}),
		of(tracestore.EdgeGraph{Reasons: missing(), Edges: []tracestore.CallEdge{{Parent: "\xff", Child: "a", Calls: 2, Errors: 1},
			{Parent: "a", Child: "b", Peer: true, Connection: tracestore.ConnectionHTTP, Durations: histogram(3, 700, math.MaxUint64)}}}),
		of(tracestore.MetricsAnswer{Step: 60, Reasons: missing(), Series: []tracestore.MetricSeries{{Service: "\xff", Operation: "b",
			Points: []tracestore.MetricPoint{{Start: 1, Calls: 2, Errors: 3, Durations: histogram(5, 100)}, {Start: 2}}}}}),
		of(tracestore.BaselineAnswer{Reasons: missing(), Durations: []tracestore.Histogram{histogram(3, 700), {}, histogram(math.MaxUint64)}}),
		of([]tracestore.SummarySpan{{ID: otlpdata.SpanID{1}, Parent: otlpdata.SpanID{7: 1}, Start: math.MaxUint64, Duration: 3,
			Service: "s", Name: "\xff", Kind: -2, Failed: true, Reversed: true, Host: 5}, {Name: "b", Extras: &tracestore.SpanExtras{Peer: "\xfe",
			Links: 7, Events: []tracestore.SpanEvent{{Time: math.MaxUint64, Name: "e"}}}}, {Extras: &tracestore.SpanExtras{}}}),
		of(tracestore.FoundSpans{IDs: []otlpdata.SpanID{{1}, {2}}, Spans: 3}), of(tracestore.TraceVersion{Number: 1 << 63, Stored: at}),
		of(tracestore.Usage{Oldest: at, OldestStart: 4, NewestStart: 5, Bytes: 1, MaxBytes: 2, Retention: 3, Reasons: missing()}),
		of(tracestore.Deleted{Spans: 7}),
		of(Followed{Missed: 3, Spans: []byte{1}}), of(Followed{}), of(Damage{Reasons: missing(), Cause: "why"}),
	}
}

func TestQuestionsAndAnswers(t *testing.T) {
	for i, w := range append(questions(), answers()...) {
		b, err := w.encode()
		if err != nil {
			t.Fatalf("%T: %v", w.value, err)
		}
		d := NewAnswer(b, nil)
		if i < len(questions()) {
			d = NewQuestion(b, nil)
		}
		if got, err := w.decode(d); err != nil || !reflect.DeepEqual(got, w.value) {
			t.Errorf("%T came back as %+v, %v\nwant %+v", w.value, got, err, w.value)
		}
		for n := range b { // a part of a message is invalid
			if _, err := w.decode(NewAnswer(b[:n], nil)); !errors.Is(err, ErrInvalid) {
				t.Fatalf("%T: %d of %d bytes: %v", w.value, n, len(b), err)
			}
		}
	}
}

// TestTenantIsNotSent checks that a client cannot choose the tenant in a question.
func TestTenantIsNotSent(t *testing.T) {
	b, err := Encode(&Find{Query: tracestore.Query{Tenant: "acme", Limit: 1}})
	if err != nil || bytes.Contains(b, []byte("acme")) {
		t.Errorf("%q, %v", b, err)
	}
	type query struct{ Tenant string }
	forged, err := Encode(&struct{ Query query }{query{"acme"}})
	if err == nil {
		err = Only(NewQuestion(forged, nil), &Find{})
	}
	if !errors.Is(err, ErrInvalid) {
		t.Errorf("forged tenant: %v", err)
	}
}

// Types of a later version.
type (
	newNested struct {
		Names []string
		Child *newNested
	}
	newNames struct {
		Rate   *newNested
		Names  []string
		More   bool
		Method string
	}
)

// TestNewerPeers checks that a set field of a later version is an error in a question, that an
// answer says that it lacks it, and that one that is not set is neither.
func TestNewerPeers(t *testing.T) {
	newer := newNames{Names: []string{"a", "b"}, More: true}
	b, err := Encode(&newer)
	if err != nil {
		t.Fatal(err)
	}
	var got Names
	if err := Only(NewQuestion(b, nil), &got); err != nil || !got.More || len(got.Names) != 2 {
		t.Errorf("fields that are not set: %+v, %v", got, err)
	}
	newer.Rate = &newNested{Names: []string{"x", "a", "x"}, Child: &newNested{Child: &newNested{}}}
	newer.Method = "b"
	if b, err = Encode(&newer); err != nil {
		t.Fatal(err)
	}
	err = Only(NewQuestion(b, nil), new(Names))
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "unknown field Names.Rate") {
		t.Errorf("unknown field of a question: %v", err)
	}
	got = Names{}
	d := NewAnswer(b, nil)
	if err := Only(d, &got); err != nil || !slices.Equal(got.Names, newer.Names) || !got.More {
		t.Errorf("unknown field of an answer: %+v, %v", got, err)
	}
	if text := d.Omitted().Text(); !strings.Contains(text, "Names.Rate, Names.Method") || !strings.Contains(text, "newer") {
		t.Errorf("omitted: %q", text)
	}
}

// shapeOf returns a struct with one field.
func shapeOf(name string, value ...byte) []byte {
	b := append([]byte{majorArray<<5 | 2, majorTag<<5 | tagShape, majorArray<<5 | 1}, appendHead(nil, majorText, uint64(len(name)))...)
	return append(append(b, name...), value...)
}

// TestInvalidMessages checks the errors for messages that no version of this program sends.
func TestInvalidMessages(t *testing.T) {
	deep := tracestore.Expr(tracestore.And{})
	for range MaxDepth {
		deep = tracestore.Not{Expr: deep}
	}
	encoded := func(v tracestore.SpanCondition) []byte {
		b, err := Encode(&v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	where := func(c tracestore.Expr) []byte { return encoded(tracestore.SpanCondition{Where: c}) }
	newer := bytes.Replace(where(tracestore.Not{}), []byte("Not"), []byte("Nor"), 1)
	rootService, err := tracestore.RootService.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	newName := append([]byte("newName"), rootService[len("newName"):]...)
	pattern := bytes.Replace(where(cond(tracestore.Name, "", tracestore.Like, tracestore.Pattern(regexp.MustCompile("xyz")))),
		[]byte("xyz"), []byte("x(z"), 1)
	for name, b := range map[string][]byte{
		"nested more than":  where(deep),
		"unknown condition": newer,
		`unknown place "newName`: bytes.Replace(where(cond(tracestore.RootService, "", tracestore.Eq, tracestore.Text(""))),
			rootService, newName, 1),
		"unknown operator":              where(cond(tracestore.Name, "", tracestore.Exists+1, tracestore.Text(""))),
		"unknown kind 3 of a literal":   where(cond(tracestore.Name, "", tracestore.Eq, tracestore.Literal{Kind: otlpdata.ValueInt})),
		"missing closing )":             pattern,
		"bytes after the value":         append(where(nil), 0),
		"indefinite length":             {majorArray<<5 | 31},
		"neither a boolean":             shapeOf("Text", majorSimple<<5|oneByte, 0),
		"has 2 fields, its shape has 1": append([]byte{majorArray<<5 | 3}, shapeOf("Text", 0, 0, 0)[1:]...),
		"shape 3; the message has":      {majorArray<<5 | 1, 3},
		"text 7; the message has":       shapeOf("Text", 7),
		"want a text":                   shapeOf("Text", majorArray<<5),
		"length of an item exceeds":     shapeOf("Text", appendHead(nil, majorText, math.MaxUint64)...),
		"tag 9":                         {majorArray<<5 | 1, majorTag<<5 | 9},
		"duplicate field": {majorArray<<5 | 3, majorTag<<5 | tagShape, majorArray<<5 | 2, majorText<<5 | 4, 'T', 'e', 'x', 't', 0,
			0, 0},
	} {
		var c tracestore.SpanCondition
		if err := Only(NewQuestion(b, nil), &c); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want %q", err, name)
		}
	}
	unknown := slices.Repeat([]byte{majorArray<<5 | 1}, 10*MaxDepth)
	var n Names
	if err := Only(NewAnswer(shapeOf("New", unknown...), nil), &n); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "nested") {
		t.Errorf("deep unknown value: %v", err)
	}
}

// TestInvalidAnswers checks that numbers of responses are within their bounds.
func TestInvalidAnswers(t *testing.T) {
	type badHistogram struct{ Durations []uint64 }
	for name, w := range map[string]wire{
		"duration bucket 512": of(tracestore.HeatCell{Bucket: tracestore.HeatBuckets}),
		"duration bucket -1":  of(tracestore.HeatCell{Bucket: -1}),
		"parent 0":            of(tracestore.PathProfile{Paths: []tracestore.CallPath{{}}}),
		"parent -2":           of(tracestore.PathProfile{Paths: []tracestore.CallPath{{Parent: -2}}}),
	} {
		b, err := w.encode()
		if err == nil {
			_, err = w.decode(NewAnswer(b, nil))
		}
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want %q", err, name)
		}
	}
	for _, counts := range [][]uint64{{}, {1}, {1, tracestore.Buckets, 1}, {1, 3, 0}, make([]uint64, 600), {1, math.MaxUint64, 1}} {
		b, err := Encode(&badHistogram{counts})
		if err == nil && len(counts) > 0 {
			err = Only(NewAnswer(b, nil), &tracestore.MetricPoint{})
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("histogram %v: %v", counts, err)
			}
		}
	}
}

// TestConstantsOfNewerServers checks that a response whose reasons or connections this program does
// not know keeps its meaning.
func TestConstantsOfNewerServers(t *testing.T) {
	b, err := Encode(&tracestore.EdgeGraph{Reasons: tracestore.Reasons{{Kind: 99, Text: "new"}, {}},
		Edges: []tracestore.CallEdge{{Connection: 99}}})
	if err != nil {
		t.Fatal(err)
	}
	var got tracestore.EdgeGraph
	want := tracestore.EdgeGraph{Edges: []tracestore.CallEdge{{}},
		Reasons: tracestore.Reasons{{Text: "new"}, {Text: "the response is incomplete"}}}
	if err := Only(NewAnswer(b, nil), &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestLimitsOfConditions checks that the limits count all conditions of a question, and that
// regular expressions are not compiled beyond them.
func TestLimitsOfConditions(t *testing.T) {
	all := func(parts ...tracestore.Expr) tracestore.Expr { return tracestore.Or(parts) }
	like := func(pattern string) tracestore.Expr {
		return cond(tracestore.Name, "", tracestore.Like, tracestore.Pattern(regexp.MustCompile(pattern)))
	}
	half := all(slices.Repeat([]tracestore.Expr{tracestore.Or{}}, MaxParts/2-1)...)
	nulls := all(make([]tracestore.Expr, MaxParts/2)...)
	long := like("[" + strings.Repeat("a", MaxPatterns/2-2) + "]")
	for name, c := range map[string]struct{ where, more tracestore.Expr }{
		"more than 8192 parts":      {half, all(half)},
		"have more than 8192 parts": {nulls, nulls},
		"more than 65536 bytes":     {all(long, long), like("a")},
		"more than 8192 steps":      {like("(?:a?b?){1000}"), like("(?:c?d?){1000}")},
	} {
		decode := func(q Find) error {
			b, err := Encode(&q)
			if err != nil {
				t.Fatal(err)
			}
			return Only(NewQuestion(b, nil), new(Find))
		}
		if err := decode(Find{Query: tracestore.Query{Where: c.where}}); err != nil {
			t.Errorf("%s: within the limit: %v", name, err)
		}
		err := decode(Find{Query: tracestore.Query{Where: c.where, OfTrace: c.more}})
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want %q", err, name)
		}
	}
}

// TestSend checks that parts have a limited size and that their concatenation is the message.
func TestSend(t *testing.T) {
	v := Names{Names: []string{"a", strings.Repeat("b", 100), "c", "", "d"}, More: true}
	want, err := Encode(&v)
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 10, 50, len(want), 1000} {
		var joined []byte
		err := Send(&v, limit, nil, func(part []byte) error {
			if len(part) > limit || len(part) == 0 {
				t.Errorf("part of %d bytes, limit %d", len(part), limit)
			}
			joined = append(joined, part...)
			return nil
		})
		if err != nil || !bytes.Equal(joined, want) {
			t.Errorf("limit %d: %v, %x, want %x", limit, err, joined, want)
		}
	}
	failed := errors.New("failed")
	for _, limit := range []int{1, 1000} {
		if err := Send(&v, limit, nil, func([]byte) error { return failed }); !errors.Is(err, failed) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

// account is a budget of memory.
type account struct{ used, limit int64 }

func (a *account) Grow(n int64) error {
	if a.used+n > a.limit {
		return errors.New("exhausted")
	}
	a.used += n
	return nil
}

func (a *account) Shrink(n int64) { a.used -= n }

// TestMemory checks that memory is reserved before it is allocated, also where a small message
// takes much of it.
func TestMemory(t *testing.T) {
	const n = 1 << 20
	spans := appendHead(shapeOf("", 0)[:0], majorArray, n) // spans without fields: two bytes each
	spans = append(spans, majorArray<<5|1, majorTag<<5|tagShape, majorArray<<5)
	spans = append(spans, bytes.Repeat([]byte{majorArray<<5 | 1, 0}, n-1)...)
	names := appendHead(nil, majorArray, n)
	names = append(names, bytes.Repeat([]byte{majorText << 5}, n)...)
	for name, decode := range map[string]func(d *Decoder) error{
		"spans": func(d *Decoder) error { d.rest = spans; return Only(d, new([]tracestore.SummarySpan)) },
		"names": func(d *Decoder) error { d.rest = names; return Only(d, new([]string)) },
	} {
		for limit, fails := range map[int64]bool{16 << 20: true, 1 << 30: false} {
			a := &account{limit: limit}
			memory, err := tracestore.Reserve(tracestore.WithAccount(t.Context(), a), 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := decode(NewAnswer(nil, memory)); tracestore.IsOutOfMemory(err) != fails || !fails && err != nil {
				t.Errorf("%s with %d bytes: %v", name, limit, err)
			}
		}
	}
}

// TestFormat pins the bytes of all messages.
func TestFormat(t *testing.T) {
	var text strings.Builder
	for _, w := range append(questions(), answers()...) {
		b, err := w.encode()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%T\n\t%x\n", w.value, b)
	}
	golden.Check(t, "testdata/messages.txt", text.String())
}

// TestPieces checks that large byte slices are not copied, and that the message is the same.
func TestPieces(t *testing.T) {
	large := bytes.Repeat([]byte{7}, pieceSize)
	var e Encoder
	for _, spans := range [][]byte{large, {1}, large} {
		if err := Append(&e, &FoundPart{Spans: spans}); err != nil {
			t.Fatal(err)
		}
	}
	n := e.Len()
	pieces := e.Take()
	message := bytes.Join(pieces, nil)
	if len(pieces) != 5 || &pieces[1][0] != &large[0] || len(message) != n || e.Len() != 0 {
		t.Errorf("%d pieces, %d bytes, want %d", len(pieces), len(message), n)
	}
	d := NewAnswer(message, nil)
	for i := range 3 {
		var part FoundPart
		if err := Next(d, &part); err != nil || i != 1 && !bytes.Equal(part.Spans, large) || i == 1 && len(part.Spans) != 1 {
			t.Errorf("part %d: %d bytes, %v", i, len(part.Spans), err)
		}
	}
	if !d.Done() {
		t.Error("bytes after the last part")
	}
}

// TestDamage checks that a DamagedError keeps its reasons and its cause.
func TestDamage(t *testing.T) {
	damage := &tracestore.DamagedError{Reasons: missing(), Err: errors.New("why")}
	if got := DamageOf(damage).Damaged(); !reflect.DeepEqual(got, damage) {
		t.Errorf("damage came back as %+v", got)
	}
}

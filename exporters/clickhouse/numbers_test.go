package clickhouse

import (
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"testing"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func TestSplitMinutes(t *testing.T) {
	const lastMinute = math.MaxUint64 / minute
	for _, c := range []struct {
		from, to uint64
		want     minuteParts
	}{
		{0, minute - 1, minuteParts{0, 1, nil}},
		{0, minute, minuteParts{0, 1, [][2]uint64{{minute, minute}}}},
		{1, minute - 1, minuteParts{rest: [][2]uint64{{1, minute - 1}}}},
		{1, 3*minute - 2, minuteParts{1, 2, [][2]uint64{{1, minute - 1}, {2 * minute, 3*minute - 2}}}},
		{minute, 3*minute - 1, minuteParts{1, 3, nil}},
		{5, 6, minuteParts{rest: [][2]uint64{{5, 6}}}},
		{0, math.MaxUint64, minuteParts{0, lastMinute + 1, nil}},
		{math.MaxUint64, math.MaxUint64, minuteParts{rest: [][2]uint64{{math.MaxUint64, math.MaxUint64}}}},
		{lastMinute * minute, math.MaxUint64, minuteParts{lastMinute, lastMinute + 1, nil}},
		{lastMinute * minute, math.MaxUint64 - 1, minuteParts{rest: [][2]uint64{{lastMinute * minute, math.MaxUint64 - 1}}}},
	} {
		if got := splitMinutes(c.from, c.to); !reflect.DeepEqual(got, c.want) {
			t.Errorf("splitMinutes(%d, %d) = %+v, want %+v", c.from, c.to, got, c.want)
		}
	}
}

// condOf returns a condition with a text or a number.
func condOf(p tracestore.Place, key string, op tracestore.Op, v tracestore.Literal) tracestore.Cond {
	return tracestore.Cond{Field: tracestore.Field{Place: p, Key: key}, Op: op, Value: v}
}

func TestMinuteCondition(t *testing.T) {
	text := tracestore.Text
	service := condOf(tracestore.Service, "", tracestore.Eq, text("it's"))
	for _, c := range []struct {
		of   tracestore.Expr
		want string // "": the table cannot decide it
	}{
		{nil, "1"},
		{tracestore.And{}, "1"},
		{tracestore.Or{}, "0"},
		{service, `service = 'it\'s'`},
		{tracestore.Not{Expr: condOf(tracestore.Name, "", tracestore.Ne, text("a"))}, "NOT (name != 'a')"},
		{tracestore.And{service, condOf(tracestore.Kind, "", tracestore.Eq, text("server"))}, `(service = 'it\'s') AND (kind = 'server')`},
		{tracestore.Or{condOf(tracestore.Status, "", tracestore.Ne, text("error"))}, "(failed != 1)"},
		{condOf(tracestore.Status, "", tracestore.Eq, text("ok")), ""},
		{condOf(tracestore.Service, "", tracestore.Lt, text("a")), ""},
		{condOf(tracestore.Service, "", tracestore.Eq, tracestore.Number(1)), ""},
		{tracestore.And{service, condOf(tracestore.Duration, "", tracestore.Ge, tracestore.Number(1))}, ""},
		{tracestore.Not{Expr: condOf(tracestore.SpanAttribute, "k", tracestore.Exists, text(""))}, ""},
	} {
		if got, ok := minuteCondition(c.of); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("minuteCondition(%v) = %q, %t, want %q", c.of, got, ok, c.want)
		}
	}
}

// TestRowsMatchLikeSpans compares conditions on rows with those on the spans that the rows are of.
func TestRowsMatchLikeSpans(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	values := []otlpdata.Value{otlpdata.StringValue("a"), otlpdata.StringValue("true"), otlpdata.IntValue(7), otlpdata.DoubleValue(2.5),
		otlpdata.BoolValue(true), otlpdata.EncodedValue(otlpdata.ValueBytes, "\x01"), {}}
	literals := []tracestore.Literal{tracestore.Text("a"), tracestore.Text("true"), tracestore.Text("7"), tracestore.Text(""),
		tracestore.Number(7), tracestore.Number(2), tracestore.Pattern(regexp.MustCompile("^[t7]"))}
	held := 0
	for range 20_000 {
		s := tracestore.Span{Resource: &otlpdata.Resource{Service: "shop"}, Scope: &otlpdata.Scope{Name: "lib"},
			Span: &otlpdata.Span{Name: "op", Start: 5, End: 9, Kind: otlpdata.KindServer, StatusCode: otlpdata.StatusError}}
		row := &spanRow{start: 5, duration: 4, texts: []string{tracestore.Status: "error", tracestore.Service: "shop",
			tracestore.Name: "op", tracestore.Kind: "server", tracestore.ScopeName: "lib", tracestore.ScopeVersion: ""}}
		for range g.IntN(4) {
			addAttribute(g, s, row, otlpdata.KeyValue{Key: []string{"k", "l"}[g.IntN(2)], Value: values[g.IntN(len(values))]})
		}
		c := condOf(tracestore.Place(g.IntN(int(tracestore.RootName)+1)), []string{"k", "l"}[g.IntN(2)],
			tracestore.Op(g.IntN(int(tracestore.Exists)+1)), literals[g.IntN(len(literals))])
		if where.Build(c, "").Whole { // not decided by rows
			continue
		}
		if row.root = uint8(g.IntN(2)); row.root == 0 {
			s.ParentID = otlpdata.SpanID{2}
		}
		e := []tracestore.Expr{c, tracestore.Not{Expr: c}, tracestore.And{c, nil}, tracestore.Or{c}}[g.IntN(4)]
		want := tracestore.Match(e, s)
		if got := row.matches(e, row.build()); got != want {
			t.Fatalf("row %+v: %+v holds: %t, want %t", row, e, got, want)
		}
		if want {
			held++
		}
	}
	if held == 0 {
		t.Error("no condition holds")
	}
}

// addAttribute adds an attribute in a random place to a span and to its row.
func addAttribute(g *rand.Rand, s tracestore.Span, row *spanRow, kv otlpdata.KeyValue) {
	p := []tracestore.Place{tracestore.SpanAttribute, tracestore.ResourceAttribute, tracestore.ScopeAttribute}[g.IntN(3)]
	switch p {
	case tracestore.SpanAttribute:
		s.Attributes = append(s.Attributes, kv)
		s.Span.Attributes = s.Attributes
	case tracestore.ResourceAttribute:
		s.Resource.Attributes = append(s.Resource.Attributes, kv)
	case tracestore.ScopeAttribute:
		s.Scope.Attributes = append(s.Scope.Attributes, kv)
	}
	key := where.Prefixes(p)[0] + kv.Key
	switch v := kv.Value; v.Kind() {
	case otlpdata.ValueString:
		row.strKeys, row.strs = append(row.strKeys, key), append(row.strs, v.Str())
	case otlpdata.ValueInt:
		row.intKeys, row.ints = append(row.intKeys, key), append(row.ints, v.Int())
	case otlpdata.ValueDouble:
		row.floatKeys, row.floats = append(row.floatKeys, key), append(row.floats, v.Double())
	default:
		row.others, row.otherTexts = append(row.others, key), append(row.otherTexts, v.AsString())
	}
}

func TestTextOf(t *testing.T) {
	for _, c := range []struct {
		form, text, want string
		present          bool
	}{
		{formAbsent, "", "", false}, {formText, "a", "a", true}, {formText, "", "", true},
		{formFloat, "4612811918334230528", "2.5", true}, {formFloat, "9223372036854775808", "-0", true},
		{formDuration, "1500", "1500", true}, {formDuration, "18446744073709551615", "18446744073709552000", true},
	} {
		if got, ok, err := textOf(c.form, c.text); err != nil || got != c.want || ok != c.present {
			t.Errorf("textOf(%q, %q) = %q, %t, %v; want %q, %t", c.form, c.text, got, ok, err, c.want, c.present)
		}
	}
	if _, _, err := textOf(formFloat, "x"); err == nil {
		t.Error("number that is none: no error")
	}
}

func TestHistogramOf(t *testing.T) {
	h, err := histogramOf(9, []uint16{7, 3, 5}, []uint64{1, 2, 0})
	if first, counts := h.Counts(); err != nil || h.Sum != 9 || first != 3 || !reflect.DeepEqual(counts, []uint64{2, 0, 0, 0, 1}) {
		t.Errorf("histogram %+v: %v", h, err)
	}
	for _, buckets := range [][]uint16{{tracestore.Buckets}, {1, 2}} {
		if _, err := histogramOf(0, buckets, []uint64{1}); err == nil {
			t.Errorf("buckets %v with one count: no error", buckets)
		}
	}
}

func TestPackedArrays(t *testing.T) {
	const text = "\x02\x01\x00\x00\x01" + "\x01\x07\x00\x00\x00\x00\x00\x00\x00" + "\x00" + "\x01\xff\xff\xff\xff" +
		"\x01\x00\x00\x00\x00\x00\x00\xf8\x3f"
	read := func(text string) (out []any, _ error) {
		p := packedArrays{rest: []byte(text)}
		out = append(out, nextArray[uint16](&p), nextArray[uint64](&p), nextArray[uint64](&p), nextArray[int32](&p), nextArray[float64](&p))
		return out, p.end()
	}
	got, err := read(text)
	if want := []any{[]uint16{1, 256}, []uint64{7}, []uint64{}, []int32{-1}, []float64{1.5}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %v, %v; want %v", got, err, want)
	}
	if got, err := read(text + "\x00"); err == nil {
		t.Errorf("read %v from a text that is too long", got)
	}
	for length := range text {
		if got, err := read(text[:length]); err == nil {
			t.Errorf("read %v from %d bytes", got, length)
		}
	}
}

func TestScaled(t *testing.T) {
	for _, c := range [][4]uint64{{100, 1, 4, 25}, {100, 5, 4, 100}, {100, 4, 4, 100}, {math.MaxUint64, 1, 2, math.MaxUint64 / 2},
		{math.MaxUint64, math.MaxUint64 - 1, math.MaxUint64, math.MaxUint64 - 1}, {7, 0, 0, 7}} {
		if got := scaled(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("scaled(%d, %d, %d) = %d, want %d", c[0], c[1], c[2], got, c[3])
		}
	}
}

func TestRelativeError(t *testing.T) {
	for _, c := range []struct {
		matching, candidates uint64
		share, want          float64
	}{{10, 100, 1, 0}, {0, 100, 0.5, 1}, {100, 100, 0.5, 0}, {25, 100, 0.75, math.Sqrt(0.25 * 0.75 / 25)}} {
		if got := relativeError(c.matching, c.candidates, c.share); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("relativeError(%d, %d, %g) = %g, want %g", c.matching, c.candidates, c.share, got, c.want)
		}
	}
}

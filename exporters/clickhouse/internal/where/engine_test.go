package where_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/exporters/clickhouse/schema"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

// TestBuildOnEngine compares the translation of random conditions with tracestore.Match.
func TestBuildOnEngine(t *testing.T) {
	server := engine.Shared(t)
	g := &generator{rand.New(rand.NewPCG(soak.Seed(t), 0))}
	s := newSpanTable(t, server, g.spans(t, 300))
	inexact := 0
	for range 12 {
		exprs := make([]tracestore.Expr, 40)
		for i := range exprs {
			exprs[i] = g.expr(2)
		}
		inexact += s.compare(t, exprs)
	}
	for range 60 {
		s.compareWhere(t, g.expr(2))
	}
	if inexact == 0 {
		t.Error("no condition was inexact")
	}
}

// TestEmptyTextOnEngine checks conditions on empty strings, which the server treats differently in
// some functions of arrays.
func TestEmptyTextOnEngine(t *testing.T) {
	g := &generator{rand.New(rand.NewPCG(soak.Seed(t), 2))}
	s := newSpanTable(t, engine.Shared(t), g.spans(t, 300))
	for place := tracestore.AnyAttribute; place <= tracestore.LinkAttribute; place++ {
		for _, key := range []string{"k", "l", "service.name"} {
			for _, op := range []tracestore.Op{tracestore.Eq, tracestore.Ne} {
				s.compareWhere(t, tracestore.Cond{Field: tracestore.Field{Place: place, Key: key}, Op: op, Value: tracestore.Text("")})
			}
		}
	}
}

// TestBucketOnEngine checks that an engine finds the same buckets as package tracestore, for
// durations around every border and for random ones.
func TestBucketOnEngine(t *testing.T) {
	server := engine.Shared(t)
	durations := []uint64{0, math.MaxUint64}
	for b := range tracestore.Buckets {
		border := uint64(tracestore.BucketStart(b))
		for d := border - 2; d != border+3; d++ {
			durations = append(durations, d)
		}
	}
	rnd := rand.New(rand.NewPCG(soak.Seed(t), 1))
	for range 20_000 {
		durations = append(durations, rnd.Uint64()>>rnd.IntN(64))
	}
	var want, list []string
	for _, d := range durations {
		heat := tracestore.HeatBucketOf(d)
		want, list = append(want, fmt.Sprintf("%d/%d/%d", tracestore.BucketOf(d), heat, heat)), append(list, where.Uint(d))
	}
	columns := []string{where.Bucket("d"), where.HeatBucket("d"), "arrayElement(" + where.HeatBucketsOf("["+where.Bucket("d")+"]") + ", 1)"}
	sql := "SELECT concat(toString(" + strings.Join(columns, "), '/', toString(") + ")) FROM " +
		"(SELECT arrayJoin(CAST([" + strings.Join(list, ", ") + "], 'Array(UInt64)')) AS d) " +
		"SETTINGS max_query_size = 100000000"
	for i, got := range strings.Fields(server.Exec(t, sql)) {
		if got != want[i] {
			t.Fatalf("bucket of %d: %s, want %s", durations[i], got, want[i])
		}
		want[i] = ""
	}
	if i := slices.IndexFunc(want, func(w string) bool { return w != "" }); i >= 0 {
		t.Fatalf("no bucket of %d", durations[i])
	}
}

// spanTable is a table with spans, and the same spans by their number, which is an attribute.
type spanTable struct {
	db    *db.DB
	spans []tracestore.Span
}

func newSpanTable(t *testing.T, server *engine.Server, b *otlpdata.Batch) *spanTable {
	t.Helper()
	c := db.DefaultConfig()
	c.Endpoints, c.Protocol, c.Database = []string{server.HTTPAddr()}, db.HTTP, server.Database(t)
	d, err := db.New(pipeline.Settings{Env: pipeline.SystemEnv()}, c, db.Dialect{})
	if err == nil {
		err = d.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	tables, err := schema.New(schema.Options{Database: c.Database})
	if err == nil {
		_, err = tables.Apply(t.Context(), d)
	}
	if err != nil {
		t.Fatal(err)
	}
	options := rows.Options{Arrived: time.Now(), Retention: time.Hour, MaxRows: 1 << 20, MaxBytes: 1 << 30}
	err = rows.Encode(b, options, func(block *rows.Block) error {
		for _, table := range []*rows.Table{block.Spans, block.Payload} {
			if err := d.Insert(t.Context(), db.Insert{Table: table.Name, Columns: table.Columns, Fill: db.FillColumns(table)}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &spanTable{db: d}
	err = tracestore.WalkSpans(b, func(span tracestore.Span) error {
		s.spans = append(s.spans, clone(t, span))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *spanTable) build(e tracestore.Expr) where.Condition {
	return where.Build(e, s.db.Table("payload")+" WHERE "+where.Tenant(""))
}

// clone returns a copy of a span that is valid after a walk.
func clone(t *testing.T, s tracestore.Span) tracestore.Span {
	t.Helper()
	r, err := otlpdata.ReadResource(s.Resource.Raw, "")
	if err != nil {
		t.Fatal(err)
	}
	scope, err := otlpdata.ReadScope(s.Scope.Raw, "")
	if err != nil {
		t.Fatal(err)
	}
	var reader otlpdata.SpanReader
	span, err := reader.Read(s.Raw)
	if err != nil {
		t.Fatal(err)
	}
	return tracestore.Span{Resource: &r, Scope: &scope, Span: span}
}

// compare evaluates conditions for each span, and returns the number of inexact ones.
func (s *spanTable) compare(t *testing.T, exprs []tracestore.Expr) (inexact int) {
	t.Helper()
	var may, must []string
	conditions := make([]where.Condition, len(exprs))
	for i, e := range exprs {
		c := s.build(e)
		conditions[i] = c
		may, must = append(may, "toUInt8("+c.SQL+")"), append(must, "toUInt8("+c.Sure+")")
		if !c.Exact {
			inexact++
		}
	}
	columns := numberColumn + ", [" + strings.Join(may, ", ") + "], [" + strings.Join(must, ", ") + "]"
	found, err := s.db.Select(t.Context(), "SELECT "+columns+" FROM "+s.db.Table("spans"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = found.Close() }()
	seen := 0
	for found.Next() {
		var id int64
		var may, must []uint8
		if err := found.Scan(&id, &may, &must); err != nil {
			t.Fatal(err)
		}
		span := s.spans[id]
		seen++
		for i, e := range exprs {
			want, c := tracestore.Match(e, span), conditions[i]
			if want && may[i] == 0 || !want && must[i] != 0 || c.Exact && (may[i] != 0) != want {
				t.Fatalf("%+v on %x: may %d, must %d, want %t: %s", e, span.Raw, may[i], must[i], want, c.SQL)
			}
		}
	}
	if err := found.Err(); err != nil || seen != len(s.spans) {
		t.Fatalf("%d spans, want %d; error %v", seen, len(s.spans), err)
	}
	return inexact
}

// compareWhere selects spans with a condition, which may use skip indexes.
func (s *spanTable) compareWhere(t *testing.T, e tracestore.Expr) {
	t.Helper()
	c := s.build(e)
	found, err := s.db.Select(t.Context(), "SELECT "+numberColumn+" FROM "+s.db.Table("spans")+" WHERE "+where.Tenant("")+" AND "+c.SQL)
	if err != nil {
		t.Fatalf("%v: %s", err, c.SQL)
	}
	defer func() { _ = found.Close() }()
	got := make(map[int64]bool)
	for found.Next() {
		var id int64
		if err := found.Scan(&id); err != nil {
			t.Fatal(err)
		}
		got[id] = true
	}
	if err := found.Err(); err != nil {
		t.Fatalf("%v: %s", err, c.SQL)
	}
	for i, span := range s.spans {
		if want := tracestore.Match(e, span); want && !got[int64(i)] || c.Exact && got[int64(i)] != want {
			t.Fatalf("%+v on %x: %t, want %t: %s", e, span.Raw, got[int64(i)], want, c.SQL)
		}
	}
}

type generator struct{ *rand.Rand }

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

func (g *generator) text() string {
	return pick(g, "", "a", "b", "ab", "azz", "a\nb", "a b", "true", "0", "-0", "1", "-1", "01", "2.5", "200", "1e+21", "1e21", "NaN",
		"+Inf", "-Inf", "9007199254740993", "9223372036854775807", "-9223372036854775808", "é", "É", "日本", "a\x00b",
		"\xff\xfe", "a\xffb", "\ufffd", "[1]", "AA==", `{"k":1}`, "it's", `a\b`, "00000000000000ff", "client", "error", "K", "\u212a", "aa]-^")
}

// longText returns a text whose end Like does not examine.
func (g *generator) longText() string {
	n := tracestore.MaxLikeBytes - g.IntN(4)
	return strings.Repeat("x", n) + pick(g, "b", "é", "日本", "azz", "\xffb")
}

func (g *generator) number() float64 {
	return pick(g, 0, math.Copysign(0, -1), 1, -1, 2.5, 200, 1e21, 1e-7, 1<<53, 1<<53+2, 1<<62, math.MaxInt64, math.MinInt64, math.MaxUint64,
		math.NaN(), math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64, math.MaxFloat64)
}

func (g *generator) key() string { return pick(g, "k", "l", "service.name", "it's=", "\xff") }

func (g *generator) attributes(m pcommon.Map) {
	for range g.IntN(4) {
		v := m.PutEmpty(g.key())
		switch g.IntN(9) {
		case 0:
			v.SetBool(g.IntN(2) == 0)
		case 1, 2:
			v.SetInt(pick[int64](g, 0, 1, -1, 200, 1<<53, 1<<53+1, 1<<53+2, math.MaxInt64, math.MinInt64, math.MaxInt64-511))
		case 3, 4:
			v.SetDouble(g.number())
		case 5:
			v.SetEmptyBytes().FromRaw([]byte{0})
		case 6:
			g.array(v.SetEmptySlice())
		case 7:
			v.SetEmptyMap().PutInt("k", 1)
		default:
			v.SetStr(g.text())
		}
	}
}

func (g *generator) array(list pcommon.Slice) {
	for range g.IntN(4) {
		switch e := list.AppendEmpty(); g.IntN(7) {
		case 0:
			e.SetBool(g.IntN(2) == 0)
		case 1:
			e.SetInt(pick[int64](g, 0, 1, -1, 200, 1<<53, 1<<53+1, math.MaxInt64, math.MinInt64))
		case 2:
			e.SetDouble(g.number())
		case 3:
			e.SetEmptyBytes().FromRaw([]byte{0})
		case 4:
			e.SetEmptySlice().AppendEmpty().SetStr(g.text())
		default:
			e.SetStr(g.text())
		}
	}
}

// numberKey is the key of the attribute with the number of a span, and numberColumn reads it.
const (
	numberKey    = "number"
	numberColumn = "int.value[indexOf(int.key, 'span." + numberKey + "')]"
)

// spans returns a batch of spans with the numbers from 0, many with the same trace and start.
func (g *generator) spans(t *testing.T, n int) *otlpdata.Batch {
	t.Helper()
	td := ptrace.NewTraces()
	for i := range n {
		rs := td.ResourceSpans().AppendEmpty()
		g.attributes(rs.Resource().Attributes())
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName(g.text())
		ss.Scope().SetVersion(g.text())
		g.attributes(ss.Scope().Attributes())
		g.span(ss.Spans().AppendEmpty(), i)
	}
	enc, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	b, err := otlpdata.FromOTLP(enc, otlpdata.Meta{}, otlpdata.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (g *generator) span(s ptrace.Span, id int) {
	s.SetTraceID(pcommon.TraceID{15: pick[byte](g, 1, 2, 3)})
	s.SetSpanID(pcommon.SpanID{6: byte(id >> 8), 7: byte(id)})
	s.Attributes().PutInt(numberKey, int64(id))
	s.SetName(g.text())
	s.SetKind(ptrace.SpanKind(g.IntN(7)))
	s.SetStartTimestamp(pick[pcommon.Timestamp](g, 0, 1, 1<<60))
	s.SetEndTimestamp(s.StartTimestamp() + pick[pcommon.Timestamp](g, 0, 1, 200, 1<<53, 1<<53+1, 1<<63, math.MaxUint64-1<<60))
	s.Status().SetCode(ptrace.StatusCode(g.IntN(4)))
	s.Status().SetMessage(g.text())
	s.SetParentSpanID(pcommon.SpanID{7: pick[byte](g, 0, 1, 0xff)})
	g.attributes(s.Attributes())
	for range g.IntN(3) {
		e := s.Events().AppendEmpty()
		e.SetName(g.text())
		g.attributes(e.Attributes())
		g.attributes(s.Links().AppendEmpty().Attributes())
	}
	if g.IntN(20) == 0 {
		s.Attributes().PutStr("long", g.longText())
	}
}

func (g *generator) expr(depth int) tracestore.Expr {
	if depth > 0 {
		switch g.IntN(7) {
		case 0:
			return tracestore.Not{Expr: g.expr(depth - 1)}
		case 1:
			return tracestore.And{g.expr(depth - 1), g.expr(depth - 1)}
		case 2:
			return tracestore.Or{g.expr(depth - 1), g.expr(depth - 1)}
		}
	}
	return g.cond()
}

func (g *generator) cond() tracestore.Cond {
	c := tracestore.Cond{Op: tracestore.Op(g.IntN(int(tracestore.Exists) + 1))}
	c.Field.Place = tracestore.Place(g.IntN(int(tracestore.RootName) + 1))
	if g.IntN(2) == 0 {
		c.Field.Place = tracestore.Place(g.IntN(int(tracestore.LinkAttribute) + 1))
	}
	if c.Field.Place.HasKey() {
		c.Field.Key = pick(g, g.key(), g.key(), g.key(), "long")
	}
	switch {
	case c.Op == tracestore.Like:
		c.Value = tracestore.Pattern(g.pattern())
	case g.IntN(3) == 0:
		c.Value = tracestore.Number(g.number())
	case c.Field.Place == tracestore.Duration:
		c.Value = tracestore.Text(pick(g, "0", "1", "200", "9007199254740992", "9007199254740993", "9223372036854775808", "18446744073709551615"))
	case c.Field.Key == "long":
		c.Value = tracestore.Text(g.longText())
	default:
		c.Value = tracestore.Text(g.text())
	}
	switch {
	case !c.Field.Place.HasKey() || c.Value.IsNumber:
	case g.IntN(4) == 0:
		c.Value.Kind = otlpdata.ValueString
	case g.IntN(8) == 0 && c.Op != tracestore.Like:
		c.Value = tracestore.Bool(g.IntN(2) == 0)
	}
	return c
}

func (g *generator) pattern() *regexp.Regexp {
	if g.IntN(8) == 0 {
		return regexp.MustCompile("^" + regexp.QuoteMeta(strings.ToValidUTF8(g.text(), "\ufffd")) + "$")
	}
	return regexp.MustCompile(pick(g, "a", "^$", "[0-9]$", "a.b", "(?s)a.b", "(?i)É", "(?i)k", "^.$", "^..$", `\bb`, `\B`, "[^a]", `\p{Han}`, `a\x00?b`,
		"a|b|", "(?m)^b", "(?m)a$", "^(?:a.*z)$", `[\]\[^-]`, `\.`, `1e\+21`, `\x{FFFD}`, `\d+`, "a{2,3}", "(?U)a+", `\Qa b\E`, "^x+b", "azz$", "()",
		"^-?[0-9]+$", "x{1000}"))
}

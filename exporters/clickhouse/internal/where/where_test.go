package where

import (
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func cond(p tracestore.Place, key string, op tracestore.Op, v tracestore.Literal) tracestore.Cond {
	return tracestore.Cond{Field: tracestore.Field{Place: p, Key: key}, Op: op, Value: v}
}

// payload is a source of ids of parents.
const payload = "payload WHERE tenant = ''"

func TestBuild(t *testing.T) {
	a := cond(tracestore.Service, "", tracestore.Eq, tracestore.Text("a"))
	unknown := cond(tracestore.RootName, "", tracestore.Ne, tracestore.Text("a"))
	long := tracestore.Cond{Field: tracestore.Field{Place: tracestore.Name}, Op: tracestore.Like,
		Value: tracestore.Pattern(regexp.MustCompile(`\B`))}
	const children = "(trace_id, start) GLOBAL IN (SELECT trace_id, start FROM " + payload +
		" AND substring(ids, 9) = unhex('00000000000000ff'))"
	const (
		ofElement = "k IN ('resource[].k', 'resource[=].k')"
		orElement = "k IN ('resource.k', 'resource[].k', 'resource[=].k')"
		isText    = "arrayExists((k, v) -> " + orElement + " AND v >= '5', origin.key, origin.value)"
		isFalse   = "((has(other.value, 'false') AND arrayExists((k, v) -> k = 'resource.k' AND v = 'false', other.key, other.value))" +
			" OR ((has(other.value, 'false') AND arrayExists((k, v) -> " + ofElement + " AND v = 'false', other.key, other.value))" +
			" AND NOT ((has(other.value, 'true') AND arrayExists((k, v) -> " + ofElement + " AND v = 'true', other.key, other.value)))))"
		isBoolean = "arrayExists((k, v) -> " + orElement + " AND v IN ('false', 'true'), other.key, other.value)"
	)
	for _, c := range []struct {
		name      string
		e         tracestore.Expr
		sql, sure string
	}{
		{"everything", nil, "1", "1"},
		{"empty And", tracestore.And{}, "1", "1"},
		{"empty Or", tracestore.Or{}, "0", "0"},
		{"property", a, "service = 'a'", "service = 'a'"},
		{"field without a value", unknown, "0", "0"},
		{"negation", tracestore.Not{Expr: a}, "NOT (service = 'a')", "NOT (service = 'a')"},
		{"negated field without a value", tracestore.Not{Expr: unknown}, "1", "1"},
		{"absorbed", tracestore.And{a, unknown}, "0", "0"},
		{"neutral", tracestore.Or{a, unknown}, "service = 'a'", "service = 'a'"},
		{"inexact", tracestore.And{a, long}, "service = 'a'", "0"},
		{"inexact negation", tracestore.And{a, tracestore.Not{Expr: long}}, "service = 'a'", "0"},
		{"number against text", cond(tracestore.Name, "", tracestore.Ne, tracestore.Number(1)), "0", "0"},
		{"duration", cond(tracestore.Duration, "", tracestore.Ge, tracestore.Number(5)), "duration >= 5", "duration >= 5"},
		{"parent", cond(tracestore.ParentID, "", tracestore.Eq, tracestore.Text("00000000000000ff")),
			"(root = 0 AND " + children + ")", "0"},
		{"another parent", cond(tracestore.ParentID, "", tracestore.Ne, tracestore.Text("00000000000000ff")),
			"root = 0", "(root = 0 AND NOT (" + children + "))"},
		{"parent that is no id", cond(tracestore.ParentID, "", tracestore.Ne, tracestore.Text("")), "root = 0", "root = 0"},
		{"any parent", cond(tracestore.ParentID, "", tracestore.Exists, tracestore.Literal{}), "root = 0", "root = 0"},
		{"parent in upper case", cond(tracestore.ParentID, "", tracestore.Eq, tracestore.Text("00000000000000FF")), "0", "0"},
		{"string", cond(tracestore.ResourceAttribute, "k", tracestore.Ge, tracestore.String("5")), isText, isText},
		{"boolean", cond(tracestore.ResourceAttribute, "k", tracestore.Ne, tracestore.Bool(true)), isFalse, isFalse},
		{"any boolean", cond(tracestore.ResourceAttribute, "k", tracestore.Exists, tracestore.Bool(true)), isBoolean, isBoolean},
		{"order of booleans", cond(tracestore.ResourceAttribute, "k", tracestore.Lt, tracestore.Bool(true)), "0", "0"},
		{"no parent", cond(tracestore.ParentID, "", tracestore.Eq, tracestore.Text("0000000000000000")), "0", "0"},
	} {
		got := Build(c.e, payload)
		if got.SQL != c.sql || got.Sure != c.sure || got.Exact != (c.sql == c.sure) {
			t.Errorf("%s: got %+v, want %q and %q", c.name, got, c.sql, c.sure)
		}
	}
}

func TestHints(t *testing.T) {
	text := cond(tracestore.SpanAttribute, "k", tracestore.Eq, tracestore.Text("1"))
	free := cond(tracestore.Name, "", tracestore.Eq, tracestore.Text("x"))
	for _, c := range []struct {
		name string
		e    tracestore.Expr
		want bool
	}{
		{"text", text, true},
		{"number", cond(tracestore.SpanAttribute, "k", tracestore.Eq, tracestore.Number(1)), true},
		{"number equal to several integers", cond(tracestore.SpanAttribute, "k", tracestore.Eq, tracestore.Number(1<<60)), false},
		{"NaN", cond(tracestore.SpanAttribute, "k", tracestore.Eq, tracestore.Number(math.NaN())), false},
		{"difference", cond(tracestore.SpanAttribute, "k", tracestore.Ne, tracestore.Text("1")), false},
		{"one part of And", tracestore.And{text, free}, true},
		{"one part of Or", tracestore.Or{text, free}, false},
		{"all parts of Or", tracestore.Or{text, tracestore.And{free, text}}, true},
		{"negation", tracestore.Not{Expr: text}, false},
		{"double negation", tracestore.Not{Expr: tracestore.Not{Expr: text}}, false},
	} {
		got := Build(c.e, payload)
		if strings.Contains(got.SQL, "indexHint") != c.want || strings.Contains(got.Sure, "indexHint") {
			t.Errorf("%s: hint %t, want %t: %s", c.name, !c.want, c.want, got.SQL)
		}
	}
}

// TestTextForms checks that a condition on a text looks for other values only if one may have that
// text form.
func TestTextForms(t *testing.T) {
	for _, v := range []otlpdata.Value{
		{}, otlpdata.BoolValue(true), otlpdata.BoolValue(false),
		otlpdata.EncodedValue(otlpdata.ValueBytes, "ab\xff"), otlpdata.EncodedValue(otlpdata.ValueBytes, ""),
		otlpdata.EncodedValue(otlpdata.ValueArray, ""), otlpdata.EncodedValue(otlpdata.ValueMap, ""),
	} {
		got := Build(cond(tracestore.SpanAttribute, "k", tracestore.Eq, tracestore.Text(v.AsString())), payload)
		if !strings.Contains(got.SQL, "other.value") {
			t.Errorf("value %q: %s", v.AsString(), got.SQL)
		}
	}
	for _, text := range []string{"user-00042", "GET", "/api/orders", "10.0.0.1"} {
		got := Build(cond(tracestore.SpanAttribute, "k", tracestore.Eq, tracestore.Text(text)), payload)
		if strings.Contains(got.SQL, "other") {
			t.Errorf("text %q: %s", text, got.SQL)
		}
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":             `''`,
		"a b":          `'a b'`,
		`it's \n`:      `'it\'s \\n'`,
		"\x00\n\x7f":   `'\x00\x0a\x7f'`,
		"ü\xff\xc3":    `'ü\xff\xc3'`,
		"'; DROP --":   `'\'; DROP --'`,
		"\ufffd%?{}@a": "'\ufffd%?{}@a'",
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%q) = %s, want %s", in, got, want)
		}
	}
}

// FuzzText checks that a literal decodes to the text, and that nothing follows it.
func FuzzText(f *testing.F) {
	f.Add(`'\''`)
	f.Add("\x00\\\xff'")
	f.Fuzz(func(t *testing.T, s string) {
		if got, ok := unquote(Text(s)); !ok || got != s {
			t.Errorf("Text(%q) = %s, which decodes to %q", s, Text(s), got)
		}
	})
}

// unquote decodes a literal as the server does.
func unquote(q string) (string, bool) {
	if len(q) < 2 || q[0] != '\'' || q[len(q)-1] != '\'' {
		return "", false
	}
	var out []byte
	for q = q[1 : len(q)-1]; len(q) > 0; {
		switch {
		case q[0] == '\'':
			return "", false
		case q[0] != '\\':
			out, q = append(out, q[0]), q[1:]
		case len(q) >= 4 && q[1] == 'x':
			n := strings.IndexByte("0123456789abcdef", q[2])<<4 | strings.IndexByte("0123456789abcdef", q[3])
			out, q = append(out, byte(n)), q[4:]
		case len(q) >= 2:
			out, q = append(out, q[1]), q[2:]
		default:
			return "", false
		}
	}
	return string(out), true
}

func TestComparisonsOfIntegers(t *testing.T) {
	numbers := []float64{0, math.Copysign(0, -1), 1, -1, 1.5, -1.5, 1 << 53, 1<<53 + 2, -1 << 53, math.MaxInt64, math.MinInt64, -1 << 62,
		math.MaxUint64, 1e19, 1e300, -1e300, math.Inf(1), math.Inf(-1), math.NaN()}
	values := []uint64{0, 1, 2, 1<<53 - 1, 1 << 53, 1<<53 + 1, 1<<53 + 2, 1<<53 + 3, 1<<62 - 1, 1 << 62,
		math.MaxInt64 - 512, math.MaxInt64 - 511,
		math.MaxInt64, 1 << 63, 1<<63 + 1, 1e19, math.MaxUint64 - 1025, math.MaxUint64 - 1024, math.MaxUint64 - 1, math.MaxUint64}
	for op := tracestore.Eq; op <= tracestore.Ge; op++ {
		for _, n := range numbers {
			literal := tracestore.Cond{Op: op, Value: tracestore.Number(n)}
			u, s := unsigned().compare("v", op, n), signed().compare("v", op, n)
			for _, v := range values {
				got, want := holds(t, u, func(i string) bool { return v >= parse[uint64](t, i) }), literal.Holds(otlpdata.DoubleValue(float64(v)))
				if got != want {
					t.Errorf("%d %d %g: %s is %t, want %t", v, op, n, u, got, want)
				}
				i := int64(v)
				if got, want := holds(t, s, func(l string) bool { return i >= parse[int64](t, l) }), literal.Holds(otlpdata.IntValue(i)); got != want {
					t.Errorf("%d %d %g: %s is %t, want %t", i, op, n, s, got, want)
				}
			}
		}
	}
}

// holds evaluates a comparison of v, given whether v is at least a number.
func holds(t *testing.T, sql string, atLeast func(string) bool) bool {
	t.Helper()
	if part, ok := strings.CutPrefix(sql, "NOT ("); ok {
		return !holds(t, strings.TrimSuffix(part, ")"), atLeast)
	}
	if left, right, ok := strings.Cut(strings.Trim(sql, "()"), " AND "); ok {
		return holds(t, left, atLeast) && holds(t, right, atLeast)
	}
	switch {
	case sql == Always:
		return true
	case sql == Never:
		return false
	case strings.HasPrefix(sql, "v >= "):
		return atLeast(sql[5:])
	case strings.HasPrefix(sql, "v < "):
		return !atLeast(sql[4:])
	case strings.HasPrefix(sql, "v = "):
		return atLeast(sql[4:]) && !atLeast(next(sql[4:]))
	}
	t.Fatalf("unknown comparison %q", sql)
	return false
}

// next returns the integer after one that has a successor.
func next(n string) string {
	if i, ok := new(big.Int).SetString(n, 10); ok {
		return i.Add(i, big.NewInt(1)).String()
	}
	return n
}

func parse[T int64 | uint64](t *testing.T, s string) T {
	t.Helper()
	n, ok := new(big.Int).SetString(s, 10)
	if !ok || T(n.Uint64()) != T(n.Int64()) && n.Sign() >= 0 {
		t.Fatalf("bad number %q", s)
	}
	if n.Sign() < 0 {
		return T(n.Int64())
	}
	return T(n.Uint64())
}

func TestTextFormsOfNumbers(t *testing.T) {
	for text, want := range map[string]bool{"5": true, "-5": true, "0": true, "05": false, "+5": false, "5.0": false, "": false, "1e3": false,
		"9223372036854775807": true, "9223372036854775808": false} {
		if _, ok := parseInt(text); ok != want {
			t.Errorf("parseInt(%q): %t, want %t", text, ok, want)
		}
	}
	for text, want := range map[string]bool{"5": true, "-0": true, "2.5": true, "2.50": false, "1e+21": true, "1e21": false, "NaN": true,
		"nan": false, "+Inf": true, "Inf": false, "-Inf": true, "0x1p3": false, "1_0": false, "1e999": false} {
		if _, ok := parseFloat(text); ok != want {
			t.Errorf("parseFloat(%q): %t, want %t", text, ok, want)
		}
	}
}

func TestPatterns(t *testing.T) {
	for in, want := range map[string]string{
		`a.c`:                `(?:a[\x{0}-\x{9}\x{b}-\x{10ffff}]c)`,
		`^a|b$`:              `(?:(?:\Aa)|(?:b\z))`,
		`(?i)ak`:             `[\x{41}-\x{41}\x{61}-\x{61}][\x{4b}-\x{4b}\x{6b}-\x{6b}\x{212a}-\x{212a}]`,
		`/v1\.0`:             `\/v1\.0`,
		`x{2,}y?`:            `(?:(?:x){2,}(?:y)?)`,
		`x{2,5}`:             `(?:x){2,5}`,
		"\x00":               `\x{0}`,
		`\bü`:                `(?:\bü)`,
		`\B`:                 "",
		"\ufffd":             "",
		`[^\x00-\x{10FFFF}]`: "",
		`(?:.{999}x){1,1}.{999}.{999}.{999}.{999}`: "",
	} {
		got, ok := patternOf(regexp.MustCompile(in))
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("patternOf(%q) = %q, want %q", in, got, want)
		}
		if ok && regexp.MustCompile(got).MatchString("ab") != regexp.MustCompile(in).MatchString("ab") {
			t.Errorf("patternOf(%q) = %q does not match the same", in, got)
		}
	}
}

func TestWindow(t *testing.T) {
	const noon = uint64(1_000_000_000_000_000_000) // 2001-09-09
	for _, c := range []struct {
		from, to uint64
		want     string
	}{
		{0, math.MaxUint64, "1"},
		{5, 4, "0"},
		{noon, math.MaxUint64, "((day >= toDate('2001-09-09') OR odd = 1) AND start >= 1000000000000000000)"},
		{0, noon, "((day <= toDate('2001-09-09') OR odd = 1) AND start <= 1000000000000000000)"},
		{noon, math.MaxUint64 - 1, "((day >= toDate('2001-09-09') OR odd = 1) AND " +
			"(start >= 1000000000000000000 AND start <= 18446744073709551614))"},
	} {
		if got := Window(c.from, c.to); got != c.want {
			t.Errorf("Window(%d, %d) = %s, want %s", c.from, c.to, got, c.want)
		}
	}
}

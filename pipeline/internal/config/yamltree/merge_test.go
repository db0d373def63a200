package yamltree_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// plain turns a tree into maps, lists and texts; an empty scalar becomes "(empty)".
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for k, e := range v {
			m[k] = plain(e)
		}
		return m
	case []any:
		l := []any{}
		for _, e := range v {
			l = append(l, plain(e))
		}
		return l
	case yamltree.Scalar:
		if v.Empty {
			return "(empty)"
		}
		return v.Text
	}
	return v
}

func TestMerge(t *testing.T) {
	type m = map[string]any
	type l = []any
	f := func(want m, texts ...string) {
		t.Helper()
		if got := plain(read(t, texts...).Root); !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\n got %v\nwant %v", texts, got, want)
		}
	}
	f(m{}, "")
	f(m{"a": m{"b": "1", "c": "2"}}, "a: {b: 1}", "a: {c: 2}") // maps merge
	f(m{"a": m{"b": m{"c": "2", "d": "1"}}}, "a: {b: {c: 1, d: 1}}", "a: {b: {c: 2}}")
	f(m{"a": l{"z"}}, "a: [x, y]", "a: [z]") // lists replace
	f(m{"a": l{}}, "a: [x, y]", "a: []")
	f(m{"a": "1"}, "a: {b: 1}", "a: 1") // the last kind counts
	f(m{"a": m{"b": "1"}}, "a: 1", "a: {b: 1}")
	f(m{"a": m{}}, "a: {b: 1, c: 1}", "a: {b: ~, c: null}") // null removes
	f(m{}, "a: {b: 1}", "a: ~")
	f(m{"a": "(empty)"}, "a: ~") // nothing precedes the first source
	f(m{"a": m{"b": "(empty)"}}, "a: {b: null}")
	f(m{}, "", "a: ~")
	f(m{"a": m{"b": "2"}}, "a: {b: 1, c: 1}", "a: ~", "a: {b: 2}")
	f(m{"a": "null"}, "a: 'null'")            // quoted is a text
	f(m{"a": m{"b": "1"}}, "a: {b: 1}", "a:") // empty leaves a block
	f(m{"a": "(empty)"}, "a:")
	f(m{"a": "(empty)"}, "a: 5", "a:")
	f(m{"a": "(empty)"}, "", "a:")
	f(m{"a": l{"(empty)", "(empty)", "x"}}, "a:\n- ~\n-\n- x")
	f(m{"1": "a", "true": "b", "a.b/c": "c", "~": "d"}, "1: a\ntrue: b\na.b/c: c\n~: d")
	f(m{"a": m{"x": "1", "y": "2"}, "b": m{"x": "1", "y": "3"}}, "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}")
	f(m{"a": m{"x": "1"}, "b": m{"x": "2", "y": "2"}, "c": m{"x": "1", "y": "2"}}, "a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}")
	f(m{"a": m{"x": "1"}, "b": m{"x": "1", "y": "2"}, "c": m{"x": "1", "y": "2"}}, "a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b}")
	f(m{"a": l{"1"}, "b": l{"1"}}, "a: &a [1]\nb: *a")
}

// A value from the command line is YAML, and the whole of it is the value of its path.
func TestFlagValues(t *testing.T) {
	f := func(yaml string, want any) {
		t.Helper()
		flag := yamltree.Source{Name: "--set a.b=" + yaml, YAML: []byte(yaml), Path: []string{"a", "b"}}
		tree, problems := yamltree.Load(append(files("a: {b: {x: 1}}"), flag), outside())
		if got := plain(tree.Get("a", "b")); !reflect.DeepEqual(got, want) || len(problems) > 0 {
			t.Errorf("%q: got %v, want %v; %v", yaml, got, want, problems)
		}
		if pos := tree.ValuePos("a", "b"); want != nil && pos.String() != "--set a.b="+yaml {
			t.Errorf("%q: it is at %q", yaml, pos)
		}
	}
	f("5", "5")
	f("x, y", "x, y")
	f("x # not y", "x")
	f("${HOST}:80", "example.org:80")
	f("[p, '${HOST}']", []any{"p", "example.org"})
	f("{y: 2}", map[string]any{"x": "1", "y": "2"})
	f("y: 2", map[string]any{"x": "1", "y": "2"})
	f("", map[string]any{"x": "1"})
	f("null", nil)
	f("'null'", "null")

	_, problems := yamltree.Load([]yamltree.Source{{Name: "--set a=}", YAML: []byte("}"), Path: []string{"a"}}}, outside())
	if want := "--set a=}: value is not valid YAML; write it in quotes"; problems.Error() != want {
		t.Errorf("got %s, want %s", problems, want)
	}
}

// Positions survive the merge: each value is where it was given last.
func TestPositions(t *testing.T) {
	tree := read(t, "a:\n  b: 1\n  c:\n    d: [x,\n      y]\n", "\na: {b: 2,\n    e: 3}\n")
	f := func(what string, got yamltree.Pos, want string) {
		t.Helper()
		if got.String() != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	f("key a", tree.KeyPos("a"), "2.yaml:2:1")
	f("key b", tree.KeyPos("a", "b"), "2.yaml:2:5")
	f("value b", tree.ValuePos("a", "b"), "2.yaml:2:8")
	f("value d", tree.ValuePos("a", "c", "d"), "1.yaml:4:8")
	f("item y", tree.ValuePos("a", "c", "d", "1"), "1.yaml:5:7")
	f("nothing below c", tree.ValuePos("a", "c", "no", "thing"), "1.yaml:4:5")
	f("nothing at all", tree.KeyPos("no"), "2.yaml")
	if got := tree.KeyPos("a", "c").Lines(); got != "lines 3-5" {
		t.Errorf("c is on %s", got)
	}
	if got := tree.KeyPos("a", "b").Lines(); got != "line 2" {
		t.Errorf("b is on %s", got)
	}
	if got := (yamltree.Pos{Source: "--set x"}).Lines(); got != "--set x" {
		t.Errorf("a flag is on %s", got)
	}
	if got := tree.Keys("a"); !slices.Equal(got, []string{"c", "b", "e"}) {
		t.Errorf("keys %v", got)
	}
	empty, _ := yamltree.Load(nil, outside())
	f("no source", empty.KeyPos("a"), "config")
}

func TestProblemsAreSortedOnce(t *testing.T) {
	at := func(order, line, col int, msg string) yamltree.Problem {
		return yamltree.Problem{Pos: yamltree.Pos{Source: "f", Order: order, Line: line, Col: col}, Msg: msg}
	}
	ps := yamltree.Problems{at(1, 1, 1, "e"), at(0, 2, 1, "d"), at(0, 1, 2, "b"), at(0, 1, 2, "c"), at(0, 1, 2, "b"), at(0, 1, 1, "a")}
	ps.Sort()
	if want := "f:1:1: a\nf:1:2: b\nf:1:2: c\nf:2:1: d\nf:1:1: e"; ps.Error() != want {
		t.Errorf("got\n%s\nwant\n%s", ps, want)
	}
}

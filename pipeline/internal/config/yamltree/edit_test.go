package yamltree_test

import (
	"encoding/json"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// Edits change one place and keep the position of what they move.
func TestEdit(t *testing.T) {
	const text = "a:\n  b: [x, y, x]\n  c: {d: '1', e: }\nf: [y, z]\ng: text\n"
	f := func(edit func(*yamltree.Tree), want string, path []string, wantPos string) {
		t.Helper()
		tree, problems := yamltree.Load(files(text), outside())
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		edit(tree)
		got, err := json.Marshal(texts(tree.Root))
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v\nwant %s", got, err, want)
		}
		if pos := tree.ValuePos(path...).String(); pos != wantPos {
			t.Errorf("%v is at %s, want %s", path, pos, wantPos)
		}
	}
	f(func(*yamltree.Tree) {}, `{"a":{"b":["x","y","x"],"c":{"d":"1","e":""}},"f":["y","z"],"g":"text"}`, []string{"a", "c", "d"}, "1.yaml:3:10")
	f(func(tr *yamltree.Tree) { tr.Remove("a", "c", "d"); tr.Remove("a", "c", "d"); tr.Remove("no", "such") },
		`{"a":{"b":["x","y","x"],"c":{"e":""}},"f":["y","z"],"g":"text"}`, []string{"a", "c", "d"}, "1.yaml:3:10")
	f(func(tr *yamltree.Tree) { tr.Move([]string{"a", "c"}, []string{"n", "m"}) },
		`{"a":{"b":["x","y","x"]},"f":["y","z"],"g":"text","n":{"m":{"d":"1","e":""}}}`, []string{"n", "m", "d"}, "1.yaml:3:10")
	f(func(tr *yamltree.Tree) { tr.Move([]string{"a", "b"}, []string{"b"}) },
		`{"a":{"c":{"d":"1","e":""}},"b":["x","y","x"],"f":["y","z"],"g":"text"}`, []string{"b", "2"}, "1.yaml:2:13")
	f(func(tr *yamltree.Tree) { tr.Copy([]string{"g"}, []string{"a", "c", "e"}, "Bearer ") },
		`{"a":{"b":["x","y","x"],"c":{"d":"1","e":"Bearer text"}},"f":["y","z"],"g":"text"}`, []string{"a", "c", "e"}, "1.yaml:3:18")
	// A text on the way to a new key is replaced.
	f(func(tr *yamltree.Tree) { tr.SetText([]string{"g", "h"}, "1") },
		`{"a":{"b":["x","y","x"],"c":{"d":"1","e":""}},"f":["y","z"],"g":{"h":"1"}}`, []string{"g", "h"}, "1.yaml:5:1")
	f(func(tr *yamltree.Tree) { tr.AppendItems([]string{"a", "b"}, []string{"f"}) },
		`{"a":{"b":["x","y","x","z"],"c":{"d":"1","e":""}},"f":["y","z"],"g":"text"}`, []string{"a", "b", "3"}, "1.yaml:4:8")
	f(func(tr *yamltree.Tree) { tr.ReplaceItem([]string{"a", "b"}, "x", "p", "q") },
		`{"a":{"b":["p","q","y","p","q"],"c":{"d":"1","e":""}},"f":["y","z"],"g":"text"}`, []string{"a", "b", "4"}, "1.yaml:2:13")
	f(func(tr *yamltree.Tree) { tr.ReplaceItem([]string{"f"}, "y"); tr.ReplaceItem([]string{"g"}, "text") },
		`{"a":{"b":["x","y","x"],"c":{"d":"1","e":""}},"f":["z"],"g":"text"}`, []string{"f", "0"}, "1.yaml:4:8")
}

// texts returns a value with its scalars as texts.
func texts(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range v {
			out[key] = texts(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = texts(inner)
		}
		return out
	case yamltree.Scalar:
		return v.Text
	}
	return nil
}

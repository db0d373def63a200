// Package yamltree merges YAML sources into one tree with positions, and decodes the tree into Go
// structs. It collects all mistakes instead of stopping at the first one.
//
//	source -- parse, expand --> tree --+
//	source -- parse, expand --> tree --+-- merge --> Tree -- Decode --> struct
//
// A path is a list of keys. As a string, its parts are joined by [Delim], because component ids may
// contain dots.
package yamltree

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Delim joins the parts of a path.
const Delim = "::"

// Pos is a position in a source. Line and Col count from 1. Line is 0 if the source has no lines,
// such as a command-line flag.
type Pos struct {
	Source    string
	Order     int // rank of the source: later ones override earlier ones
	Line, Col int
	EndLine   int // last line of the block that begins at Line
}

// String returns `file:line:col`, or the source alone.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.Source
	}
	return fmt.Sprintf("%s:%d:%d", p.Source, p.Line, p.Col)
}

// Compare orders positions by source, line and column.
func (p Pos) Compare(q Pos) int {
	return cmp.Or(cmp.Compare(p.Order, q.Order), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Col, q.Col))
}

// Lines returns the lines of the block that begins at p, for messages: `lines 3-5`.
func (p Pos) Lines() string {
	switch {
	case p.Line == 0:
		return p.Source
	case p.EndLine > p.Line:
		return fmt.Sprintf("lines %d-%d", p.Line, p.EndLine)
	}
	return fmt.Sprintf("line %d", p.Line)
}

// Problem is one mistake in the configuration.
type Problem struct {
	Pos  Pos
	Path string // as shown to users, joined by dots
	Msg  string
}

// Error returns `file:line:col: path: message`.
func (p Problem) Error() string {
	if p.Path == "" {
		return fmt.Sprintf("%s: %s", p.Pos, p.Msg)
	}
	return fmt.Sprintf("%s: %s: %s", p.Pos, p.Path, p.Msg)
}

// Problems is a list of mistakes. As an error, it has one line per mistake.
type Problems []Problem

// Error returns one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Sort sorts the problems by position and removes duplicates.
func (ps *Problems) Sort() {
	slices.SortStableFunc(*ps, func(a, b Problem) int {
		return a.Pos.Compare(b.Pos)
	})
	seen := make(map[Problem]bool, len(*ps))
	*ps = slices.DeleteFunc(*ps, func(p Problem) bool {
		again := seen[p]
		seen[p] = true
		return again
	})
}

// Scalar is a leaf of the tree: the text after expansion.
type Scalar struct {
	Text   string
	Quoted bool   // a string, even if it looks like a number or a bool
	Empty  bool   // the key has no value; a block with such a key is present and has its defaults
	Null   bool   // an explicit null: like Empty, but a value that is not a block keeps its default
	Bad    string // why the text could not be expanded
	// Written is the text before expansion, or "" if it contains no variables or files.
	Written string
}

// removal is the leaf for an explicit `null` or `~` in a later source. It removes the key from
// earlier sources.
type removal struct{}

// Tree is the merged configuration. Its values are map[string]any, []any and Scalar.
type Tree struct {
	Root map[string]any
	keys map[string]Pos // by path
	vals map[string]Pos // by path

	included []included
}

// Join returns the path as one string.
func Join(path ...string) string { return strings.Join(path, Delim) }

// Display returns the path as it is shown to users.
func Display(path ...string) string { return strings.Join(path, ".") }

// KeyPos returns the position of the key at path, or of the nearest key above that has a position.
func (t *Tree) KeyPos(path ...string) Pos { return nearest(t.keys, path) }

// ValuePos returns the position of the value at path, or of the nearest value above that has a
// position.
func (t *Tree) ValuePos(path ...string) Pos { return nearest(t.vals, path) }

func nearest(m map[string]Pos, path []string) Pos {
	for n := len(path); n >= 0; n-- {
		if p, ok := m[Join(path[:n]...)]; ok {
			return p
		}
	}
	return Pos{Source: "config"}
}

// Get returns the value at path, or nil. The key of a list item is its index.
func (t *Tree) Get(path ...string) any {
	var v any = t.Root
	for _, k := range path {
		v, _ = child(v, k)
	}
	return v
}

// Has reports whether the tree has the key at path, with or without a value.
func (t *Tree) Has(path ...string) bool {
	if len(path) == 0 {
		return true
	}
	_, ok := child(t.Get(path[:len(path)-1]...), path[len(path)-1])
	return ok
}

func child(parent any, key string) (any, bool) {
	switch p := parent.(type) {
	case map[string]any:
		v, ok := p[key]
		return v, ok
	case []any:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(p) {
			return p[i], true
		}
	}
	return nil, false
}

// Map returns the map at path, or nil if there is none.
func (t *Tree) Map(path ...string) map[string]any {
	m, _ := t.Get(path...).(map[string]any)
	return m
}

// Keys returns the keys of the map at path by position.
func (t *Tree) Keys(path ...string) []string {
	m := t.Map(path...)
	at := make(map[string]Pos, len(m))
	for k := range m {
		at[k] = t.KeyPos(append(path[:len(path):len(path)], k)...)
	}
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(at[a].Compare(at[b]), cmp.Compare(a, b)) })
}

package yamltree

import (
	"slices"
	"strconv"
)

// Remove removes the value at path, which must not be an item of a list. The position of its key
// stays known.
func (t *Tree) Remove(path ...string) {
	last := len(path) - 1
	delete(t.Map(path[:last]...), path[last])
}

// Move moves the value at from, which must not be an item of a list, with the positions of
// everything in it.
func (t *Tree) Move(from, to []string) {
	value, pos := t.Get(from...), t.KeyPos(from...)
	t.copyPositions(value, from, to)
	t.Remove(from...)
	t.put(to, value, pos)
}

// copyPositions copies the positions of a value to another path.
func (t *Tree) copyPositions(value any, from, to []string) {
	t.keys[Join(to...)], t.vals[Join(to...)] = t.KeyPos(from...), t.ValuePos(from...)
	each := func(key string, v any) {
		t.copyPositions(v, append(from[:len(from):len(from)], key), append(to[:len(to):len(to)], key))
	}
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			each(key, inner)
		}
	case []any:
		for i, inner := range v {
			each(strconv.Itoa(i), inner)
		}
	}
}

// SetText sets the value at path. A new key has the position of the nearest key above.
func (t *Tree) SetText(path []string, text string) {
	t.put(path, Scalar{Text: text, Quoted: true}, t.KeyPos(path...))
}

// SetTexts sets the value at path to a list of texts. A new key has the position of the nearest key
// above.
func (t *Tree) SetTexts(path []string, texts []string) {
	items := make([]any, len(texts))
	for i, text := range texts {
		items[i] = Scalar{Text: text, Quoted: true}
	}
	t.put(path, items, t.KeyPos(path...))
}

// Copy copies the scalar at path from to path to, and adds a prefix to its text. If the scalar
// could not be expanded, the copy has the same error.
func (t *Tree) Copy(from, to []string, prefix string) {
	s, _ := t.Get(from...).(Scalar)
	s.Text, s.Quoted = prefix+s.Text, true
	t.put(to, s, t.KeyPos(to...))
}

// AppendItems adds the missing texts of another list to a list, with their positions.
func (t *Tree) AppendItems(list, from []string) {
	more, _ := t.Get(from...).([]any)
	if len(more) == 0 {
		return
	}
	items, _ := t.Get(list...).([]any)
	items = slices.Clip(items)
	for i, v := range more {
		text, ok := v.(Scalar)
		has := func(v any) bool { s, ok := v.(Scalar); return ok && s.Text == text.Text }
		if !ok || slices.ContainsFunc(items, has) {
			continue
		}
		t.copyPositions(v, append(slices.Clone(from), strconv.Itoa(i)), append(slices.Clone(list), strconv.Itoa(len(items))))
		items = append(items, v)
	}
	t.put(list, items, t.KeyPos(list...))
}

// put sets a value. Blocks above it that do not exist are created at pos.
func (t *Tree) put(path []string, value any, pos Pos) {
	m := t.Root
	for i, key := range path {
		at := Join(path[:i+1]...)
		if _, ok := t.keys[at]; !ok {
			t.keys[at], t.vals[at] = pos, pos
		}
		if i == len(path)-1 {
			m[key] = value
			return
		}
		inner, ok := m[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			m[key] = inner
		}
		m = inner
	}
}

// ReplaceItem replaces the texts of a list that are equal to item, each at its position.
func (t *Tree) ReplaceItem(list []string, item string, by ...string) {
	items, ok := t.Get(list...).([]any)
	if !ok {
		return
	}
	isItem := func(v any) bool { s, ok := v.(Scalar); return ok && s.Text == item }
	if !slices.ContainsFunc(items, isItem) {
		return
	}
	var out []any
	var positions []Pos
	for i, v := range items {
		pos := t.ValuePos(append(slices.Clone(list), strconv.Itoa(i))...)
		if !isItem(v) {
			out, positions = append(out, v), append(positions, pos)
			continue
		}
		for _, text := range by {
			out, positions = append(out, Scalar{Text: text}), append(positions, pos)
		}
	}
	t.put(list, out, t.KeyPos(list...))
	for i, pos := range positions {
		at := Join(append(slices.Clone(list), strconv.Itoa(i))...)
		t.keys[at], t.vals[at] = pos, pos
	}
}

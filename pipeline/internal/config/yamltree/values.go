package yamltree

import (
	"regexp"
	"strconv"
)

// Values returns the block at path with scalars of their YAML 1.2 types: bool, int (uint64 or
// float64 if the number is larger), float64 and string; a key without a value is nil. texts holds
// the text of the scalars that are not strings, by path below the block. The problems are scalars
// that could not be expanded.
func (t *Tree) Values(path ...string) (block any, texts map[string]string, problems Problems) {
	v := &valuer{decoder: decoder{tree: t}, depth: len(path), texts: map[string]string{}}
	block = v.typed(t.Get(path...), path)
	return block, v.texts, v.problems
}

type valuer struct {
	decoder
	depth int
	texts map[string]string
}

func (v *valuer) typed(in any, path []string) any {
	switch in := in.(type) {
	case map[string]any:
		out := make(map[string]any, len(in))
		for _, k := range v.tree.Keys(path...) {
			out[k] = v.typed(in[k], append(path[:len(path):len(path)], k))
		}
		return out
	case []any:
		out := make([]any, len(in))
		for i, item := range in {
			out[i] = v.typed(item, append(path[:len(path):len(path)], strconv.Itoa(i)))
		}
		return out
	case Scalar:
		if in.Bad != "" {
			v.bad(path, "%s", in.Bad)
		}
		typed := in.Typed()
		if _, isText := typed.(string); !isText && typed != nil {
			v.texts[Join(path[v.depth:]...)] = in.Text
		}
		return typed
	}
	return nil
}

var (
	yamlInt   = regexp.MustCompile(`^[-+]?[0-9]+$`)
	yamlFloat = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
)

// Typed returns the scalar with its YAML 1.2 type, see [Tree.Values].
func (s Scalar) Typed() any {
	switch {
	case s.Empty:
		return nil
	case s.Quoted:
		return s.Text
	}
	switch s.Text {
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	}
	if yamlInt.MatchString(s.Text) {
		if n, err := strconv.Atoi(s.Text); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(s.Text, 10, 64); err == nil {
			return n
		}
	}
	if yamlFloat.MatchString(s.Text) {
		if f, err := strconv.ParseFloat(s.Text, 64); err == nil {
			return f
		}
	}
	return s.Text
}

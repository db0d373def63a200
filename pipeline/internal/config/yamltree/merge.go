package yamltree

import (
	"errors"
	"maps"

	"github.com/knadh/koanf/v2"
)

// Source is a source of configuration. Later sources override earlier ones.
type Source struct {
	Name string // path of a file, `preset all-in-one`, or the flag as it was typed
	YAML []byte
	// Path, if set, is the path of the value in YAML. The source is then a flag, which has no
	// lines.
	Path []string
}

// Load parses and merges the sources. Maps are merged, lists and scalars are replaced. An explicit
// null in a later source removes a key; in the first source it is an empty value. The tree is
// usable even if there are problems, so that later checks can find more.
func Load(sources []Source, expand *Expander) (*Tree, Problems) {
	out := &Tree{keys: map[string]Pos{}, vals: map[string]Pos{}}
	var problems Problems
	k := koanf.New(Delim)
	for i, src := range sources {
		p := &parser{source: src.Name, order: i, expand: expand, tree: &Tree{keys: map[string]Pos{}, vals: map[string]Pos{}}}
		if len(src.Path) == 0 {
			whole := Pos{Source: src.Name, Order: i}
			out.keys[""], out.vals[""] = whole, whole
			p.parse(src.YAML)
		} else {
			p.parseAt(src.Path, src.YAML)
			p.keepPositions(src.Path, out)
		}
		if err := k.Load(tree(p.tree.Root), nil, koanf.WithMergeFunc(merge)); err != nil {
			p.problem(Pos{Source: src.Name, Order: i}, nil, "%v", err)
		}
		maps.Copy(out.keys, p.tree.keys)
		maps.Copy(out.vals, p.tree.vals)
		out.included = append(out.included, p.tree.included...)
		problems = append(problems, p.problems...)
	}
	out.Root = k.Raw()
	return out, problems
}

// keepPositions keeps existing positions of the blocks that contain a flag's value: the flag sets
// only the value at its path.
func (p *parser) keepPositions(path []string, out *Tree) {
	for n := range path {
		at := Join(path[:n]...)
		if _, ok := out.keys[at]; ok {
			delete(p.tree.keys, at)
			delete(p.tree.vals, at)
		}
	}
}

// merge overrides values of dst with values from src.
func merge(src, dst map[string]any) error {
	for k, v := range src {
		switch v := v.(type) {
		case removal:
			delete(dst, k)
		case map[string]any:
			below, ok := dst[k].(map[string]any)
			if !ok {
				below = map[string]any{}
				dst[k] = below
			}
			if err := merge(v, below); err != nil {
				return err
			}
		case Scalar:
			if _, ok := dst[k].(map[string]any); ok && v.Empty {
				continue // the block exists already
			}
			dst[k] = v
		default:
			dst[k] = v
		}
	}
	return nil
}

// tree is a koanf.Provider for a parsed source.
type tree map[string]any

// ReadBytes is not used, because the source is parsed already.
func (t tree) ReadBytes() ([]byte, error) {
	return nil, errors.New("BUG: a parsed source has no bytes")
}

// Read returns the tree.
func (t tree) Read() (map[string]any, error) { return t, nil }

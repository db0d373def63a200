package yamltree

import (
	"errors"
	"maps"

	"github.com/knadh/koanf/v2"
)

// Source is one place that configuration comes from. Later sources override earlier ones.
type Source struct {
	Name string // a file's path, `preset all-in-one`, or the flag as it was typed
	YAML []byte
	// Path, when set, is where the value of YAML belongs: the source is a command-line flag without lines.
	Path []string
}

// Load parses and merges the sources. Maps merge, lists and scalars replace, an explicit null removes. The tree is usable even when there
// are problems, so that later checks can add theirs.
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
			p.leave(src.Path, out)
		}
		if err := k.Load(tree(p.tree.Root), nil, koanf.WithMergeFunc(merge)); err != nil {
			p.problem(Pos{Source: src.Name, Order: i}, nil, "%v", err)
		}
		maps.Copy(out.keys, p.tree.keys)
		maps.Copy(out.vals, p.tree.vals)
		problems = append(problems, p.problems...)
	}
	out.Root = k.Raw()
	return out, problems
}

// leave keeps the places of the blocks that a flag's value is put into, where they have one: a flag writes only what is in its path.
func (p *parser) leave(path []string, out *Tree) {
	for n := range path {
		at := Join(path[:n]...)
		if _, there := out.keys[at]; there {
			delete(p.tree.keys, at)
			delete(p.tree.vals, at)
		}
	}
}

// merge puts src over dst.
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
				continue // the block is there already
			}
			dst[k] = v
		default:
			dst[k] = v
		}
	}
	return nil
}

// tree is a koanf provider of a parsed source.
type tree map[string]any

// ReadBytes is not used: the source is parsed already.
func (t tree) ReadBytes() ([]byte, error) {
	return nil, errors.New("conf: a parsed source has no bytes")
}

// Read returns the tree.
func (t tree) Read() (map[string]any, error) { return t, nil }

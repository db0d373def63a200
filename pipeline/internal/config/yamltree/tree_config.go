package yamltree

import (
	"fmt"

	"github.com/tracing-backend/tracing/pipeline"
)

// TreeConfig is implemented by pointers to configurations that decode themselves from a tree of
// values, because the framework does not know the types of their keys. The framework calls
// UnmarshalTree instead of setting fields; the methods that follow it serve reloads, the printed
// configuration and the reference documentation.
type TreeConfig interface {
	// UnmarshalTree decodes and checks the keys that the user has set, over the defaults. Scalars
	// have their YAML 1.2 types: an unquoted true, 5 or 0.5 is a bool, an int or a float64, and all
	// other text is a string; a key without a value is nil. Lists are []any and maps are
	// map[string]any. texts holds the text of the scalars that are not strings, by path joined by
	// `::`, for keys that must be text. UnmarshalTree must not change its arguments. Its error
	// joins a [pipeline.KeyError] for each mistake.
	UnmarshalTree(tree map[string]any, texts map[string]string) error
	// GivenTree returns the tree of the last UnmarshalTree. Two configurations of the same type are
	// equal if their trees are.
	GivenTree() map[string]any
	// EffectiveTree returns all values, including defaults. Secrets in it are [MaskedSecret].
	EffectiveTree() map[string]any
	// TreeKeys describes the keys for the reference documentation, blocks before their keys, and
	// returns the address of a more detailed description, or "".
	TreeKeys() (keys []TreeKey, documentation string)
}

// MaskedSecret replaces secrets in an effective tree. It is also how a [pipeline.Secret] is
// printed.
const MaskedSecret = "***"

// TreeKey describes one key of a [TreeConfig].
type TreeKey struct {
	// Path is the key below the component, joined by dots. `<name>` is a key that the user chooses,
	// `[]` an item of a list.
	Path    string
	Type    string // in the words of the reference: `string`, `duration`, `list of strings`
	Default string // as a user would write it; "" if there is none to show
	Doc     string // one sentence, or ""
	// Block is the name of the Go type whose fields are the keys below, or "". The reference lists
	// the keys of a type once.
	Block string
}

// UnknownKeyError is the error of UnmarshalTree for a key that does not exist.
type UnknownKeyError struct {
	pipeline.KeyError
	Known []string // the keys that exist beside it
}

// UnknownKey returns an [*UnknownKeyError] for a key, given by its path joined by `::`. The
// framework adds the position and the most similar one of the known keys.
func UnknownKey(path, name string, known []string) error {
	return &UnknownKeyError{pipeline.KeyError{Key: path, Msg: fmt.Sprintf("unknown key %q", name)}, known}
}

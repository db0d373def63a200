package otelcol

import (
	"encoding"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"
)

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

// field is a key of a block.
type field struct {
	key   string
	index []int
	typ   reflect.Type
}

// fieldsOf returns the keys of a struct, including the keys of structs that are squashed into it.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get(confmap.MapstructureTag), ",")
		switch {
		case name == "-" || strings.Contains(options, "remain"):
		case strings.Contains(options, "squash"):
			for _, inner := range fieldsOf(blockType(f.Type)) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
		case name != "" && f.IsExported():
			fields = append(fields, field{name, []int{i}, f.Type})
		}
	}
	return fields
}

// blockType returns the struct type behind pointers, and an empty one if there is none.
func blockType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return reflect.TypeFor[struct{}]()
	}
	return t
}

// inside returns the type that users write for a t: t without pointers, and the block's type if t
// makes a block optional.
func inside(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !isOptional(t) {
		return t
	}
	get, _ := reflect.PointerTo(t).MethodByName("Get")
	return inside(get.Type.Out(0))
}

// isOptional reports whether t is the Collector's type for blocks that are enabled by their key.
func isOptional(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || !strings.HasPrefix(t.Name(), "Optional[") {
		return false
	}
	get, ok := reflect.PointerTo(t).MethodByName("Get")
	return ok && get.Type.NumIn() == 1 && get.Type.NumOut() == 1 && get.Type.Out(0).Kind() == reflect.Pointer
}

// typeAt returns the type at a path below t, or nil.
func typeAt(t reflect.Type, path string) reflect.Type {
	for part := range strings.SplitSeq(path, delim) {
		t = inside(t)
		switch {
		case path == "":
		case t.Kind() == reflect.Struct:
			fields := fieldsOf(t)
			i := slices.IndexFunc(fields, func(f field) bool { return f.key == part })
			if i < 0 {
				return nil
			}
			t = fields[i].typ
		case t.Kind() == reflect.Map || t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
			t = t.Elem()
		default:
			return nil
		}
	}
	return inside(t)
}

// knownKeys returns the keys of the block at path.
func knownKeys(config component.Config, path string) []string {
	t := typeAt(reflect.TypeOf(config), path)
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	var keys []string
	for _, f := range fieldsOf(t) {
		keys = append(keys, f.key)
	}
	return keys
}

// givenPath returns a path of the Collector's validation as users write it: without the names of
// structs whose keys belong to the block above.
func givenPath(config component.Config, path string) string {
	t := reflect.TypeOf(config)
	given := ""
	for part := range strings.SplitSeq(path, delim) {
		squashed := false
		if t != nil {
			t, squashed = step(inside(t), part)
		}
		if !squashed {
			given = join(given, part)
		}
	}
	return given
}

// step returns the type of a part of t, or nil, and whether the part is a squashed struct.
func step(t reflect.Type, part string) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct {
		return typeAt(t, part), false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if strings.Contains(f.Tag.Get(confmap.MapstructureTag), ",squash") && strings.ToLower(f.Name) == part {
			return f.Type, true
		}
	}
	return typeAt(t, part), false
}

// typeWord returns the name of a type for users.
func typeWord(t reflect.Type) string {
	optional := isOptional(t)
	t = inside(t)
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "duration"
	case reflect.TypeFor[configopaque.String]():
		return "secret"
	case reflect.TypeFor[component.ID]():
		return "string"
	}
	switch {
	case reflect.PointerTo(t).Implements(textUnmarshaler):
		return "string"
	case optional:
		return "optional " + typeWord(t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return "list of " + plural(typeWord(t.Elem()))
	case reflect.Map:
		return "map of " + plural(typeWord(t.Elem()))
	case reflect.Struct:
		return "map"
	case reflect.Interface:
		return "any"
	}
	return "integer"
}

func plural(word string) string {
	if word == "any" {
		return word
	}
	return word + "s"
}

func withArticle(word string) string {
	switch {
	case word == "any":
		return "any value"
	case word == "integer" || strings.HasPrefix(word, "optional"):
		return "an " + word
	}
	return "a " + word
}

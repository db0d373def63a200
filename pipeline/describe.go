package pipeline

import (
	"encoding"
	"fmt"
	"reflect"
)

// keyDoc describes one key of a configuration to its users.
type keyDoc struct {
	path     string // below the component; `<name>` stands for a key of the user's choice, `[]` for the items of a list
	typ      string
	defaults string // "" where there is none to show
	doc      string
}

// describe returns all keys of a config, a pointer to a struct with its defaults, in the order of its fields, blocks before what they hold.
func describe(config any) []keyDoc {
	d := &describer{}
	d.fields(reflect.ValueOf(config).Elem(), "")
	return d.keys
}

type describer struct {
	keys  []keyDoc
	depth int
}

// maxTypeDepth ends the walk of a config type that contains itself.
const maxTypeDepth = 16

// fields adds the keys of a struct.
func (d *describer) fields(v reflect.Value, prefix string) {
	d.depth++
	defer func() { d.depth-- }()
	if d.depth > maxTypeDepth {
		return
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key := f.Tag.Get("yaml")
		switch {
		case f.Anonymous && key == "":
			d.fields(v.Field(i), prefix)
		case key != "" && key != "-":
			d.key(prefix+key, v.Field(i), f.Tag)
		}
	}
}

func (d *describer) key(path string, v reflect.Value, tag reflect.StructTag) {
	k := keyDoc{path: path, typ: typeWord(v.Type(), tag), doc: tag.Get("doc")}
	if o, ok := v.Addr().Interface().(optional); ok {
		block, on := o.inner()
		if !on {
			k.typ += ", off unless given"
		}
		d.keys = append(d.keys, k)
		d.below(path, reflect.ValueOf(block).Elem())
		return
	}
	k.defaults = defaultText(v)
	d.keys = append(d.keys, k)
	d.below(path, v)
}

// below adds the keys of the blocks that a value holds. Those in a map or a list have no defaults to show.
func (d *describer) below(path string, v reflect.Value) {
	if isLeaf(v) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.fields(v, path+".")
	case reflect.Map:
		d.below(path+".<name>", reflect.New(v.Type().Elem()).Elem())
	case reflect.Slice:
		d.below(path+"[]", reflect.New(v.Type().Elem()).Elem())
	case reflect.Pointer:
		d.below(path, reflect.New(v.Type().Elem()).Elem())
	}
}

// isLeaf reports whether a value is written as one word.
func isLeaf(v reflect.Value) bool {
	if _, text := v.Addr().Interface().(encoding.TextUnmarshaler); text {
		return true
	}
	switch v.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Pointer:
		return false
	}
	return true
}

// typeWord names a type in the user's words.
func typeWord(t reflect.Type, tag reflect.StructTag) string {
	switch v := reflect.New(t).Interface().(type) {
	case *Duration:
		return "duration"
	case *ByteSize:
		return "size"
	case *Secret:
		return "secret"
	case *Endpoint:
		return "host:port"
	case *ID:
		return "id"
	case reference:
		if word := tag.Get("ref"); word != "" {
			return "id of " + word
		}
		return "id"
	case encoding.TextUnmarshaler:
		return "text"
	case optional:
		return "block"
	default:
		_ = v
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list of " + plural(typeWord(t.Elem(), tag))
	case reflect.Map:
		return "map of " + plural(typeWord(t.Elem(), tag))
	case reflect.Pointer:
		return typeWord(t.Elem(), tag)
	case reflect.Struct:
		return "block"
	}
	return "whole number"
}

func plural(word string) string {
	switch word {
	case "true or false":
		return word
	case "host:port":
		return "addresses"
	}
	return word + "s"
}

// defaultText returns the default of a key as it would be written, or "" for a block and for nothing.
func defaultText(v reflect.Value) string {
	if isLeaf(v) {
		return leafText(v)
	}
	if v.Kind() == reflect.Slice && v.Len() > 0 && isLeaf(v.Index(0)) {
		items := make([]string, v.Len())
		for i := range items {
			items[i] = leafText(v.Index(i))
		}
		return fmt.Sprint(items)
	}
	return ""
}

// leafText returns a leaf as it would be written; secrets are masked.
func leafText(v reflect.Value) string {
	switch leaf := v.Interface().(type) {
	case reference:
		if !leaf.IsSet() {
			return ""
		}
		return leaf.ID().String()
	case encoding.TextMarshaler:
		text, err := leaf.MarshalText()
		if err != nil {
			return ""
		}
		return string(text)
	}
	return fmt.Sprint(v.Interface())
}

package config

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// keyDoc is the documentation of one configuration key.
type keyDoc struct {
	path     string // below the component; `<name>` is a key that the user chooses, `[]` is an item of a list
	typ      string
	defaults string // "" if there is none to show
	doc      string
}

// describe returns all keys of config, a pointer to a struct with defaults, in the order of its
// fields. Blocks precede their keys.
func describe(config any) []keyDoc {
	d := &describer{}
	if t, ok := config.(yamltree.TreeConfig); ok {
		keys, _ := t.TreeKeys()
		for _, k := range keys {
			d.keys = append(d.keys, keyDoc{path: k.Path, typ: k.Type, defaults: k.Default, doc: k.Doc})
		}
		return d.keys
	}
	d.fields(reflect.ValueOf(config).Elem(), "")
	return d.keys
}

type describer struct {
	keys  []keyDoc
	depth int
}

// maxTypeDepth limits the walk of recursive types.
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
		block, on := o.Block()
		if !on {
			k.typ += ", off unless given"
		}
		d.keys = append(d.keys, k)
		d.inner(path, reflect.ValueOf(block).Elem())
		return
	}
	k.defaults = defaultText(v)
	d.keys = append(d.keys, k)
	d.inner(path, v)
}

// inner adds the keys of the blocks in a value. Blocks in a map or a list have no defaults.
func (d *describer) inner(path string, v reflect.Value) {
	if isLeaf(v) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.fields(v, path+".")
	case reflect.Map:
		d.inner(path+".<name>", reflect.New(v.Type().Elem()).Elem())
	case reflect.Slice:
		d.inner(path+"[]", reflect.New(v.Type().Elem()).Elem())
	case reflect.Pointer:
		d.inner(path, reflect.New(v.Type().Elem()).Elem())
	}
}

// isLeaf reports whether a value is written as a scalar.
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

// typeWord returns the name of a type for users.
func typeWord(t reflect.Type, tag reflect.StructTag) string {
	switch reflect.New(t).Interface().(type) {
	case *pipeline.Duration:
		return "duration"
	case *pipeline.ByteSize:
		return "size"
	case *pipeline.Secret:
		return "secret"
	case *pipeline.Endpoint:
		return "host:port"
	case *pipeline.ID:
		return "id"
	case *pipeline.PipelineID:
		return "pipeline id"
	case ref:
		if word := tag.Get("ref"); word != "" {
			return "id of " + word
		}
		return "id"
	case encoding.TextUnmarshaler:
		return "text"
	case optional:
		return "block"
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
	if rest, ok := strings.CutPrefix(word, "list of "); ok {
		return "lists of " + rest
	}
	return word + "s"
}

// defaultText returns the default of a key as a user would write it, or "" for blocks and unset
// values.
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

// leafText returns a scalar as a user would write it. Secrets are masked.
func leafText(v reflect.Value) string {
	switch leaf := v.Interface().(type) {
	case ref:
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

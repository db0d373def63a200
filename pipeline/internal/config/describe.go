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
	path     string // below the component; `<name>` is a key that the user chooses, `[]` is a list item
	typ      string
	defaults string // "" if there is none to show
	doc      string
	block    *blockDoc // the keys below, or nil
}

// blockDoc is the documentation of the keys of a block.
type blockDoc struct {
	goType string // package and name of the Go type; "" if it has no name
	prefix string // common prefix of the paths of the keys: "" or, for example, `tls.`
	items  []blockItem
}

// blockItem is a key of a block or, if embedded is set, the keys of an embedded type that other
// blocks share.
type blockItem struct {
	key      keyDoc
	embedded *blockDoc
}

// all returns all keys of a block and of the blocks in it, blocks before their keys.
func (b *blockDoc) all() []keyDoc {
	if b == nil {
		return nil
	}
	var keys []keyDoc
	for _, item := range b.items {
		if item.embedded != nil {
			keys = append(keys, item.embedded.all()...)
			continue
		}
		keys = append(append(keys, item.key), item.key.block.all()...)
	}
	return keys
}

// describe returns the keys of config, a pointer to a struct with defaults, in the order of its
// fields.
func describe(config any) *blockDoc {
	if t, ok := config.(yamltree.TreeConfig); ok {
		keys, _ := t.TreeKeys()
		return describeTree(keys)
	}
	d := &describer{}
	return d.fields(reflect.ValueOf(config).Elem(), "")
}

// describeTree returns the keys of a list in which blocks precede their keys.
func describeTree(keys []yamltree.TreeKey) *blockDoc {
	root := &blockDoc{}
	blocks := map[string]*blockDoc{"": root} // by the path of the block, without `[]` and `<name>` at the end
	for _, k := range keys {
		above := k.Path[:strings.LastIndexByte(k.Path, '.')+1]
		b := blocks[blockPath(above)]
		doc := keyDoc{path: k.Path, typ: k.Type, defaults: k.Default, doc: k.Doc}
		if k.Block != "" {
			doc.block = &blockDoc{goType: k.Block}
			blocks[blockPath(k.Path+".")] = doc.block
		}
		b.prefix = above
		b.items = append(b.items, blockItem{key: doc})
	}
	return root
}

// blockPath returns the path of the block whose keys begin with prefix.
func blockPath(prefix string) string {
	path := strings.TrimSuffix(prefix, ".")
	for {
		outer := strings.TrimSuffix(strings.TrimSuffix(path, "[]"), ".<name>")
		if outer == path {
			return path
		}
		path = outer
	}
}

type describer struct{ depth int }

// maxTypeDepth limits the walk of recursive types.
const maxTypeDepth = 16

// fields returns the keys of a struct.
func (d *describer) fields(v reflect.Value, prefix string) *blockDoc {
	b := &blockDoc{prefix: prefix}
	if v.Type().Name() != "" {
		b.goType = v.Type().PkgPath() + "." + v.Type().Name()
	}
	d.depth++
	defer func() { d.depth-- }()
	if d.depth > maxTypeDepth {
		return b
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key := f.Tag.Get("yaml")
		switch {
		case f.Anonymous && key == "":
			b.items = append(b.items, blockItem{embedded: d.fields(v.Field(i), prefix)})
		case key != "" && key != "-":
			b.items = append(b.items, blockItem{key: d.key(prefix+key, v.Field(i), f.Tag)})
		}
	}
	return b
}

func (d *describer) key(path string, v reflect.Value, tag reflect.StructTag) keyDoc {
	k := keyDoc{path: path, typ: typeWord(v.Type(), tag), doc: tag.Get("doc")}
	if o, ok := v.Addr().Interface().(optional); ok {
		block, on := o.Block()
		if !on {
			k.typ = "optional " + k.typ
		}
		k.block = d.inner(path, reflect.ValueOf(block).Elem())
		return k
	}
	k.defaults = defaultText(v)
	k.block = d.inner(path, v)
	return k
}

// inner returns the keys of the blocks in a value, or nil. Blocks in a map or a list have no
// defaults.
func (d *describer) inner(path string, v reflect.Value) *blockDoc {
	if isLeaf(v) {
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.fields(v, path+".")
	case reflect.Map:
		return d.inner(path+".<name>", reflect.New(v.Type().Elem()).Elem())
	case reflect.Slice:
		return d.inner(path+"[]", reflect.New(v.Type().Elem()).Elem())
	case reflect.Pointer:
		return d.inner(path, reflect.New(v.Type().Elem()).Elem())
	}
	return nil
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
		return "bytes"
	case *pipeline.Secret:
		return "secret"
	case ref:
		if word := tag.Get("ref"); word != "" {
			return "id of " + word
		}
		return "id"
	case *pipeline.ID, *pipeline.PipelineID:
		return "id"
	case encoding.TextUnmarshaler:
		return "string"
	case optional:
		return "map"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list of " + plural(typeWord(t.Elem(), tag))
	case reflect.Map:
		return "map of " + plural(typeWord(t.Elem(), tag))
	case reflect.Pointer:
		return typeWord(t.Elem(), tag)
	case reflect.Struct:
		return "map"
	}
	return "integer"
}

func plural(word string) string {
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

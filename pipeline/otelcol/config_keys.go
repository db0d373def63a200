package otelcol

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// maxKeyDepth is the maximum number of nested blocks whose keys the reference lists. The policies
// of tail_sampling, which contain policies, would otherwise fill pages.
const maxKeyDepth = 3

// TreeKeys implements [yamltree.TreeConfig].
func (c *Config) TreeKeys() ([]yamltree.TreeKey, string) {
	d := &describer{docs: c.docs}
	d.value(reflect.ValueOf(c.value), "", 0, true)
	return d.keys, documentation(c.value)
}

// documentation returns the URL of a component's own documentation.
func documentation(config component.Config) string {
	return "https://pkg.go.dev/" + blockType(reflect.TypeOf(config)).PkgPath()
}

type describer struct {
	docs map[string]string
	keys []yamltree.TreeKey
}

// value adds the keys below v. depth is the number of blocks above. Only values of present blocks
// are shown as defaults.
func (d *describer) value(v reflect.Value, path string, depth int, isDefault bool) {
	t := inside(v.Type())
	switch {
	case reflect.PointerTo(t).Implements(textUnmarshaler):
	case t.Kind() == reflect.Struct:
		block, found := present(v)
		d.block(block, path, depth, isDefault && found)
	case t.Kind() == reflect.Slice:
		d.value(reflect.New(t.Elem()).Elem(), path+"[]", depth, false)
	case t.Kind() == reflect.Map:
		d.value(reflect.New(t.Elem()).Elem(), path+".<name>", depth, false)
	}
}

// otherSignal matches keys for data that this program does not process.
var otherSignal = regexp.MustCompile(`^(metric|log|profile)s?(_|$)`)

func (d *describer) block(v reflect.Value, path string, depth int, isDefault bool) {
	if depth == maxKeyDepth {
		return
	}
	for _, f := range fieldsOf(v.Type()) {
		if depth == 0 && otherSignal.MatchString(f.key) {
			continue
		}
		k := yamltree.TreeKey{Path: strings.TrimPrefix(path+"."+f.key, "."), Type: typeWord(f.typ), Block: blockName(f.typ)}
		k.Doc = d.doc(k.Path)
		fv := fieldValue(v, f)
		if isDefault {
			k.Default = defaultText(fv)
		}
		d.keys = append(d.keys, k)
		d.value(fv, k.Path, depth+1, isDefault)
	}
}

// doc returns what a key means, or "".
func (d *describer) doc(path string) string {
	for {
		if doc, ok := d.docs[path]; ok {
			return doc
		}
		_, rest, found := strings.Cut(path, ".")
		if !found {
			return ""
		}
		path = rest
	}
}

// blockName returns the name of the Go type whose keys are below a key, or "".
func blockName(t reflect.Type) string {
	t = inside(t)
	switch {
	case reflect.PointerTo(t).Implements(textUnmarshaler):
		return ""
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Map:
		return blockName(t.Elem())
	case t.Kind() == reflect.Struct && t.Name() != "":
		return t.PkgPath() + "." + t.Name()
	}
	return ""
}

// fieldValue returns the value of a field, or a zero value if a pointer on its path is nil.
func fieldValue(v reflect.Value, f field) reflect.Value {
	fv, err := v.FieldByIndexErr(f.index)
	if err != nil {
		return reflect.New(f.typ).Elem()
	}
	return fv
}

// present returns the struct behind pointers and optional blocks, or the zero value and false if
// there is none.
func present(v reflect.Value) (block reflect.Value, found bool) {
	for v.Kind() == reflect.Pointer || isOptional(v.Type()) {
		switch {
		case v.Kind() == reflect.Pointer && !v.IsNil():
			v = v.Elem()
		case v.Kind() == reflect.Struct && v.CanAddr():
			v = v.Addr().MethodByName("Get").Call(nil)[0]
		default:
			return reflect.New(inside(v.Type())).Elem(), false
		}
	}
	return v, true
}

// defaultText returns a default as a user would write it, or "" if there is none to show.
func defaultText(v reflect.Value) string {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		return time.Duration(v.Int()).String()
	}
	switch v.Kind() {
	case reflect.Bool:
		return fmt.Sprint(v.Bool())
	case reflect.String:
		if v.String() != "" && typeWord(v.Type()) == "secret" {
			return yamltree.MaskedSecret
		}
		return v.String()
	case reflect.Struct, reflect.Map, reflect.Interface, reflect.Func, reflect.Chan:
		return ""
	case reflect.Slice, reflect.Array:
		if v.Len() == 0 || inside(v.Type().Elem()).Kind() != reflect.String {
			return ""
		}
		var items []string
		for i := range v.Len() {
			items = append(items, defaultText(v.Index(i)))
		}
		return fmt.Sprint(items)
	case reflect.Float32, reflect.Float64:
		return fmt.Sprint(v.Float())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprint(v.Uint())
	}
	return fmt.Sprint(v.Int())
}

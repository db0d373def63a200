package repo_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline"
)

// TestEveryConfigFieldIsDocumented checks that every configuration key of every component has a doc
// tag that ends with a full stop.
func TestEveryConfigFieldIsDocumented(t *testing.T) {
	for _, f := range tracing.Components() {
		if f.Summary() == "" {
			t.Errorf("%s %s: no summary", f.Kind(), f.Type())
		}
		fields := checkFields(t, f.Kind().String()+" "+f.Type(), reflect.TypeOf(f.Defaults()).Elem(), map[reflect.Type]bool{})
		t.Logf("%s %s: %d keys", f.Kind(), f.Type(), fields)
	}
}

// checkFields checks the fields of a configuration type and returns the number of keys.
func checkFields(t *testing.T, where string, typ reflect.Type, seen map[reflect.Type]bool) int {
	if seen[typ] {
		return 0
	}
	seen[typ] = true
	if typ == reflect.TypeFor[pipeline.PipelineID]() {
		return 0 // written as text
	}
	switch typ.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer:
		return checkFields(t, where, typ.Elem(), seen)
	case reflect.Struct:
	default:
		return 0
	}
	if strings.HasPrefix(typ.Name(), "Optional[") {
		block, _ := typ.FieldByName("value")
		return checkFields(t, where, block.Type, seen)
	}
	n := 0
	for i := range typ.NumField() {
		f := typ.Field(i)
		key, doc := f.Tag.Get("yaml"), f.Tag.Get("doc")
		switch {
		case !f.IsExported():
			continue
		case f.Anonymous && key == "":
		case key == "":
			t.Errorf("%s: field %s of %s has no yaml tag", where, f.Name, typ)
		case doc == "" || !strings.HasSuffix(doc, "."):
			t.Errorf("%s: key %s needs a doc tag that ends with a full stop, not %q", where, key, doc)
		default:
			n++
		}
		n += checkFields(t, where+"."+key, f.Type, seen)
	}
	return n
}

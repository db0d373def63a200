package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline"
)

// The keys of the service section must be documented, like keys of components.
func TestEveryServiceKeyIsDocumented(t *testing.T) {
	keys := 0
	var check func(path string, typ reflect.Type)
	check = func(path string, typ reflect.Type) {
		if typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		for i := range typ.NumField() {
			f := typ.Field(i)
			if !f.IsExported() {
				continue
			}
			key := path + "." + f.Tag.Get("yaml")
			if f.Tag.Get("yaml") == "" || !strings.HasSuffix(f.Tag.Get("doc"), ".") {
				t.Errorf("%s (%s): needs a yaml tag and a doc tag that is a sentence", key, f.Name)
			}
			keys++
			if f.Type != reflect.TypeFor[[]pipeline.ID]() {
				check(key, f.Type)
			}
		}
	}
	check("service", reflect.TypeFor[Service]())
	if keys < 10 {
		t.Errorf("checked only %d keys", keys)
	}
}

package pipelinetest

import (
	"encoding"
	"reflect"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// checkConfig loads the configuration, and checks that every key has a name and a doc tag.
func checkConfig(s *suite) {
	f := s.sub.factory
	if f.Summary() == "" {
		s.Errorf("%s %s: no summary; give the factory a Doc", f.Kind(), f.Type())
	}
	typ := reflect.TypeOf(f.Defaults()).Elem()
	s.documented(typ.String(), typ, map[reflect.Type]bool{})
	block, dir := s.config()
	if _, err := s.load(&program{suite: s}, block, dir); err != nil {
		s.Errorf("loading the configuration:\n%v", err)
	}
}

// documented checks a type and the types of its fields.
func (s *suite) documented(where string, typ reflect.Type, seen map[reflect.Type]bool) {
	if seen[typ] {
		return
	}
	seen[typ] = true
	switch typ.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer:
		s.documented(where, typ.Elem(), seen)
		return
	case reflect.Struct:
	default:
		return
	}
	if reflect.PointerTo(typ).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return // a value, not a block of keys
	}
	if block, ok := optionalBlock(typ); ok {
		s.documented(where, block, seen)
		return
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		if !f.IsExported() {
			continue
		}
		key, doc := f.Tag.Get("yaml"), f.Tag.Get("doc")
		switch {
		case f.Anonymous && key == "":
		case key == "":
			s.Errorf("%s: field %s has no yaml tag", where, f.Name)
		case strings.Contains(key, ","):
			s.Errorf("%s: field %s: tag %q is not a key; delete options such as inline (an embedded struct needs no tag)", where, f.Name, key)
		case !strings.HasSuffix(doc, "."):
			s.Errorf("%s: key %s needs a doc tag that ends with a full stop, not %q", where, key, doc)
		}
		s.documented(where+"."+f.Name, f.Type, seen)
	}
}

// optionalBlock returns the T of a pipeline.Optional[T].
func optionalBlock(typ reflect.Type) (reflect.Type, bool) {
	if typ.PkgPath() != reflect.TypeFor[pipeline.ID]().PkgPath() || !strings.HasPrefix(typ.Name(), "Optional[") {
		return nil, false
	}
	get, ok := typ.MethodByName("Get")
	if !ok {
		return nil, false
	}
	return get.Type.Out(0), true
}

package config

import (
	"reflect"

	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// Equal reports whether two configurations, given as pointers of the same type, have the same
// settings. References are equal if they name the same component.
func Equal(a, b any) bool {
	if t, ok := a.(yamltree.TreeConfig); ok {
		return reflect.DeepEqual(t.GivenTree(), b.(yamltree.TreeConfig).GivenTree())
	}
	return equal(reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem())
}

func equal(a, b reflect.Value) bool {
	if r, ok := a.Interface().(ref); ok {
		return r.ID() == b.Interface().(ref).ID()
	}
	if o, ok := a.Addr().Interface().(optional); ok {
		blockA, onA := o.Block()
		blockB, onB := b.Addr().Interface().(optional).Block()
		return onA == onB && (!onA || Equal(blockA, blockB))
	}
	switch a.Kind() {
	case reflect.Struct:
		return equalFields(a, b)
	case reflect.Slice:
		return a.Len() == b.Len() && equalItems(a, b)
	case reflect.Map:
		return a.Len() == b.Len() && equalEntries(a, b)
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return equal(a.Elem(), b.Elem())
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// equalFields compares structs. Structs with unexported fields, such as times or compiled
// expressions, are compared as a whole.
func equalFields(a, b reflect.Value) bool {
	for i := range a.NumField() {
		if !a.Type().Field(i).IsExported() {
			return reflect.DeepEqual(a.Interface(), b.Interface())
		}
	}
	for i := range a.NumField() {
		if !equal(a.Field(i), b.Field(i)) {
			return false
		}
	}
	return true
}

func equalItems(a, b reflect.Value) bool {
	for i := range a.Len() {
		if !equal(a.Index(i), b.Index(i)) {
			return false
		}
	}
	return true
}

func equalEntries(a, b reflect.Value) bool {
	for _, k := range a.MapKeys() {
		other := b.MapIndex(k)
		if !other.IsValid() || !equal(addressable(a.MapIndex(k)), addressable(other)) {
			return false
		}
	}
	return true
}

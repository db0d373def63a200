package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
)

// Walk calls visit for the configuration of the component and every enabled value in it, a block
// before its keys. field points to the value; path is the list of keys that lead to it.
func (c *Component) Walk(visit func(path []string, field any, tag reflect.StructTag)) {
	walkFields(reflect.ValueOf(c.Value).Elem(), nil, "", func(path []string, v reflect.Value, tag reflect.StructTag) {
		if v.CanAddr() && v.Addr().CanInterface() {
			visit(path, v.Addr().Interface(), tag)
		}
	})
}

// walkFields calls visit for v and every field in it, with path and struct tag. It skips blocks
// that are disabled.
func walkFields(v reflect.Value, path []string, tag reflect.StructTag, visit func(path []string, v reflect.Value, tag reflect.StructTag)) {
	visit(path, v, tag)
	if o, ok := v.Addr().Interface().(optional); ok {
		if block, on := o.Block(); on {
			walkFields(reflect.ValueOf(block).Elem(), path, tag, visit)
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			at := path
			if key := f.Tag.Get("yaml"); key != "" {
				at = below(path, key)
			}
			walkFields(v.Field(i), at, f.Tag, visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walkFields(v.Index(i), below(path, fmt.Sprint(i)), "", visit)
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		for _, k := range keys {
			walkFields(addressable(v.MapIndex(k)), below(path, k.String()), "", visit)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			walkFields(v.Elem(), path, tag, visit)
		}
	}
}

// below returns a copy of path with one more part.
func below(path []string, part string) []string { return append(path[:len(path):len(path)], part) }

// addressable returns an addressable copy of v. Map values are not addressable.
func addressable(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

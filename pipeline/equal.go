package pipeline

import "reflect"

// sameConfig reports whether two values of a configuration mean the same: every field that a file can set is equal, references by what they
// name. It does not look at what a reference is bound to.
func sameConfig(a, b reflect.Value) bool {
	if r, ok := a.Interface().(reference); ok {
		return r.ID() == b.Interface().(reference).ID()
	}
	if o, ok := a.Addr().Interface().(optional); ok {
		va, on := o.inner()
		vb, too := b.Addr().Interface().(optional).inner()
		return on == too && (!on || sameConfig(reflect.ValueOf(va).Elem(), reflect.ValueOf(vb).Elem()))
	}
	switch a.Kind() {
	case reflect.Struct:
		return sameFields(a, b)
	case reflect.Slice:
		return a.Len() == b.Len() && sameItems(a, b)
	case reflect.Map:
		return a.Len() == b.Len() && sameEntries(a, b)
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return sameConfig(a.Elem(), b.Elem())
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// sameFields compares structs. One with fields of its own, such as a time or a compiled expression, is compared as a whole.
func sameFields(a, b reflect.Value) bool {
	for i := range a.NumField() {
		if !a.Type().Field(i).IsExported() {
			return reflect.DeepEqual(a.Interface(), b.Interface())
		}
	}
	for i := range a.NumField() {
		if !sameConfig(a.Field(i), b.Field(i)) {
			return false
		}
	}
	return true
}

func sameItems(a, b reflect.Value) bool {
	for i := range a.Len() {
		if !sameConfig(a.Index(i), b.Index(i)) {
			return false
		}
	}
	return true
}

func sameEntries(a, b reflect.Value) bool {
	for _, k := range a.MapKeys() {
		other := b.MapIndex(k)
		if !other.IsValid() || !sameConfig(addressable(a.MapIndex(k)), addressable(other)) {
			return false
		}
	}
	return true
}

// addressable returns a copy that has an address: values of a map have none.
func addressable(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

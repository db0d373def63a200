package pipeline

import "reflect"

// Ref is a configuration field that names an exporter or extension which implements T, for example
// `storage: disk`. The name and the type are checked when the configuration is loaded. Get returns
// the component as soon as the owner of the field is built.
//
// An exporter that is referenced is built even if no pipeline lists it. A referenced component is
// started before and stopped after the owner of the field.
type Ref[T any] struct{ target *refTarget }

type refTarget struct {
	id        ID
	component any
}

// BoundRef returns a reference whose Get returns component, for tests of components.
func BoundRef[T any](component T) Ref[T] { return Ref[T]{&refTarget{component: component}} }

// IsSet reports whether the configuration names a component.
func (r Ref[T]) IsSet() bool { return r.target != nil }

// ID returns the ID in the configuration, or the zero ID.
func (r Ref[T]) ID() ID {
	if r.target == nil {
		return ID{}
	}
	return r.target.id
}

// Get returns the component. It panics if the reference is not set, and while configurations are
// validated.
func (r Ref[T]) Get() T { return r.target.component.(T) }

// UnmarshalText parses an id.
func (r *Ref[T]) UnmarshalText(b []byte) error {
	id, err := ParseID(string(b))
	if err != nil {
		return err
	}
	r.target = &refTarget{id: id}
	return nil
}

// Interface returns the type T. The framework calls it when it checks the configuration.
func (r Ref[T]) Interface() reflect.Type { return reflect.TypeFor[T]() }

// Bind sets the component, which must implement T. The framework calls it before it builds the
// owner of the field.
func (r Ref[T]) Bind(component any) { r.target.component = component }

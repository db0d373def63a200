package pipeline

import "reflect"

// Ref is a config field that names an exporter or an extension which can do T: `storage: disk`. The loader checks it before anything is
// built, and the graph binds it to the component itself before the owner's build is called. An exporter that is referenced is built even
// when no pipeline lists it, and is started before and stopped after whoever names it.
type Ref[T any] struct{ bound *refTarget }

type refTarget struct {
	id    ID
	value any
}

// RefTo returns an unbound reference, for defaults.
func RefTo[T any](id ID) Ref[T] { return Ref[T]{&refTarget{id: id}} }

// BoundRef returns a reference that is bound already, for tests of components.
func BoundRef[T any](v T) Ref[T] { return Ref[T]{&refTarget{value: v}} }

// IsSet reports whether the configuration names anything.
func (r Ref[T]) IsSet() bool { return r.bound != nil }

// ID returns the id that the configuration names, or the zero ID.
func (r Ref[T]) ID() ID {
	if r.bound == nil {
		return ID{}
	}
	return r.bound.id
}

// Get returns the component. It panics when the reference is not set, and before the graph has bound it.
func (r Ref[T]) Get() T { return r.bound.value.(T) }

// UnmarshalText reads an id.
func (r *Ref[T]) UnmarshalText(b []byte) error {
	id, err := ParseID(string(b))
	if err != nil {
		return err
	}
	r.bound = &refTarget{id: id}
	return nil
}

// reference is what the loader and the graph need of a Ref, whatever its T.
type reference interface {
	IsSet() bool
	ID() ID
	wants() reflect.Type
	bind(component any)
}

func (r Ref[T]) wants() reflect.Type { return reflect.TypeFor[T]() }
func (r Ref[T]) bind(component any)  { r.bound.value = component }

var _ reference = Ref[any]{}

package pipeline

// Optional is a configuration block that is enabled by the presence of its key, even if the key has
// no value: `protocols: {grpc: }`. It has default values whether it is enabled or not.
type Optional[T any] struct {
	on    bool
	value T
}

// Absent returns a block that is disabled unless the configuration has its key. If it has the key,
// the block starts with the given defaults.
func Absent[T any](defaults T) Optional[T] { return Optional[T]{value: defaults} }

// Present returns an enabled block, for defaults and tests.
func Present[T any](value T) Optional[T] { return Optional[T]{on: true, value: value} }

// Get returns the block, and whether it is enabled.
func (o Optional[T]) Get() (block T, enabled bool) { return o.value, o.on }

// TurnOn enables the block and returns a pointer to it. The framework calls it when the
// configuration has the key.
func (o *Optional[T]) TurnOn() any {
	o.on = true
	return &o.value
}

// Block returns a pointer to the block, and whether it is enabled. The framework calls it to
// inspect blocks of any type.
func (o *Optional[T]) Block() (block any, enabled bool) { return &o.value, o.on }

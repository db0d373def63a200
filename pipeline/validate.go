package pipeline

import (
	"fmt"
	"reflect"
)

// Validator is implemented by configurations, and parts of configurations, that check what the
// types of their fields cannot. Validate reports all mistakes, see [BadKey].
type Validator interface{ Validate() error }

// KeyError is the error of Validate for a mistake in one key. Several are joined with errors.Join.
type KeyError struct {
	Key string // path below the configuration, joined by `::`; "" is the configuration itself
	Msg string
}

// Error returns the message.
func (e *KeyError) Error() string { return e.Msg }

// BadKey returns a [*KeyError]. The framework adds file, line and column of the key.
func BadKey(key, format string, args ...any) error {
	return &KeyError{Key: key, Msg: fmt.Sprintf(format, args...)}
}

// Limited is implemented by the configuration of a component that provides the interface want,
// which a [Ref] asks for, only with certain settings. Lacks returns what is missing in the
// settings, or nil if the component can be referenced.
type Limited interface {
	Lacks(want reflect.Type) error
}

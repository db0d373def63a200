package pipeline

import (
	"fmt"
	"reflect"
	"time"
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

// Warner is implemented by configurations with values that are valid but cannot have the effect
// that their names promise. Warnings returns these, see [BadKey]. maxWait is
// service.limits.max_wait; 0 means no limit.
type Warner interface {
	Warnings(maxWait time.Duration) error
}

// TenantSeparator is implemented by the configuration of a listener that may restrict clients to
// tenants.
type TenantSeparator interface {
	// SeparatesTenants reports whether every request must name an allowed tenant.
	SeparatesTenants() bool
}

// TenantBypass is implemented by the configuration of a component that may not be covered by the
// tenants of other listeners: its clients reach the data of every tenant without credentials, or
// its spans have no tenant.
type TenantBypass interface {
	// BypassesTenants returns what is not covered and which key to change, or "". It is a mistake
	// if another listener separates tenants, or, if it is allowed, the reason for a warning.
	BypassesTenants() (problem string, allowed bool)
}

// Limited is implemented by the configuration of a component that provides the interface want,
// which a [Ref] asks for, only with certain settings. Lacks returns what is missing in the
// settings, or nil if the component can be referenced. For the exporters of pipelines, want is
// [Consumer].
type Limited interface {
	Lacks(want reflect.Type) error
}

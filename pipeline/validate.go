package pipeline

import (
	"fmt"
	"reflect"
	"time"
)

// Validator is implemented by configurations, and parts of configurations, with rules that the
// types of their fields cannot express. Validate reports all mistakes, see [BadKey].
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

// Warner is implemented by configurations that may contain values that are valid but have no
// effect. Warnings returns a warning for each, see [BadKey]. maxWait is service.limits.max_wait; 0
// means no limit.
type Warner interface {
	Warnings(maxWait time.Duration) error
}

// TenantSeparator is implemented by the configuration of a listener that may restrict clients to
// tenants.
type TenantSeparator interface {
	// SeparatesTenants reports whether every request must name an allowed tenant.
	SeparatesTenants() bool
}

// TenantBypass is implemented by the configuration of a component that may bypass the separation of
// tenants: its clients reach the data of every tenant without credentials, or its spans have no
// tenant.
type TenantBypass interface {
	// BypassesTenants returns what bypasses the separation and which key to change, or "". If
	// another listener separates tenants, this is a mistake, or a warning if allowed.
	BypassesTenants() (problem string, allowed bool)
}

// Limited is implemented by the configuration of a component that implements an interface only with
// certain settings. want is the interface that a [Ref] requires; for the exporters of pipelines it
// is [Consumer]. Lacks returns what is missing in the settings, or nil if the component can be
// referenced.
type Limited interface {
	Lacks(want reflect.Type) error
}

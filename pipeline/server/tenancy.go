package server

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

const defaultTenantHeader = "x-tenant"

// maxTenant bounds the name of a tenant, in bytes: it becomes part of storage keys.
const maxTenant = 256

// TenancyConfig are the keys below `tenancy`.
type TenancyConfig struct {
	Enabled bool     `yaml:"enabled" doc:"Whether tenants are kept apart; false is as if the block were not there."`
	Header  string   `yaml:"header" doc:"Header (gRPC: metadata) that names the tenant."`
	Tenants []string `yaml:"tenants" doc:"Tenants that exist, named in printable ASCII; empty lets any name in."`
}

// Validate checks the names.
func (c *TenancyConfig) Validate() error {
	var errs []error
	if c.Header == "" {
		errs = append(errs, pipeline.BadKey("header", "must be set; the usual one is %s", defaultTenantHeader))
	}
	for _, t := range c.Tenants {
		if !canBeTenant(t) {
			errs = append(errs, pipeline.BadKey("tenants", "%.300q cannot be sent in a header; a name has 1 to %d printable ASCII characters, and no space at an end",
				t, maxTenant))
		}
	}
	return errors.Join(errs...)
}

// canBeTenant reports whether every next hop can be told of a tenant: gRPC knows no other values of headers ("PROTOCOL-HTTP2.md",
// ASCII-Value), and HTTP none with a space at an end.
func canBeTenant(name string) bool {
	return name != "" && strings.Trim(name, " ") == name && len(name) <= maxTenant && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' })
}

type tenantKey struct{}

// Tenant returns the tenant whose request a handler serves: "", the default tenant, on a listener that does not keep tenants apart.
func Tenant(ctx context.Context) string {
	t, _ := ctx.Value(tenantKey{}).(string)
	return t
}

// tenancy is the check of the tenant's header.
type tenancy struct {
	header string
	known  []string // nil: any
}

func newTenancy(c TenancyConfig) *tenancy { return &tenancy{header: c.Header, known: c.Tenants} }

// tenant returns the tenant that the values of the header name. The error is a *[Denied] with the text that clients know.
func (t *tenancy) tenant(values []string) (string, error) {
	switch {
	case len(values) == 0 || values[0] == "":
		return "", &Denied{ReasonTenant, "missing tenant header"}
	case len(values) > 1:
		return "", &Denied{ReasonTenant, "extra tenant header"}
	case !canBeTenant(values[0]), len(t.known) > 0 && !slices.Contains(t.known, values[0]):
		return "", &Denied{ReasonTenant, "unknown tenant"}
	}
	return values[0], nil
}

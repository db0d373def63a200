package server

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

const defaultTenantHeader = "x-tenant"

// maxTenantLength is in bytes. The name becomes part of storage keys.
const maxTenantLength = 256

// TenancyConfig is the block `tenancy`.
type TenancyConfig struct {
	Enabled bool     `yaml:"enabled" doc:"Whether tenants are separated. The block also enables this if the key is missing."`
	Header  string   `yaml:"header" doc:"HTTP header or gRPC metadata key that names the tenant."`
	Tenants []string `yaml:"tenants" doc:"Names of the allowed tenants, in printable ASCII. Empty allows all names."`
}

// Validate checks the header and the names of tenants.
func (c *TenancyConfig) Validate() error {
	var errs []error
	if c.Header == "" {
		errs = append(errs, pipeline.BadKey("header", "must be set; the default is %s", defaultTenantHeader))
	}
	for _, t := range c.Tenants {
		if !validTenant(t) {
			errs = append(errs, pipeline.BadKey("tenants",
				"%.300q is not a valid tenant name; use 1 to %d printable ASCII characters without leading or trailing spaces", t, maxTenantLength))
		}
	}
	return errors.Join(errs...)
}

// Tenant returns the tenant in the values of the tenant header, for receivers whose protocol is
// neither HTTP nor gRPC. The rules are the same as for the listeners of this package. The error is
// a *[Denied].
func (c *TenancyConfig) Tenant(values []string) (string, error) {
	tenant, denied := newTenancy(*c).tenant(values)
	if denied != nil {
		return "", denied
	}
	return tenant, nil
}

// validTenant reports whether the name can be sent in a header to every next hop: gRPC allows only
// printable ASCII (ASCII-Value in its PROTOCOL-HTTP2.md), and HTTP strips leading and trailing
// spaces.
func validTenant(name string) bool {
	unprintable := func(r rune) bool { return r < ' ' || r > '~' }
	return name != "" && len(name) <= maxTenantLength && strings.Trim(name, " ") == name && !strings.ContainsFunc(name, unprintable)
}

type tenantKey struct{}

// Tenant returns the tenant of the request with the context ctx. It is "", the default tenant, if
// the listener does not separate tenants.
func Tenant(ctx context.Context) string {
	t, _ := ctx.Value(tenantKey{}).(string)
	return t
}

// tenancy reads and checks the tenant header.
type tenancy struct {
	header string
	known  []string // empty if any is allowed
}

func newTenancy(c TenancyConfig) *tenancy { return &tenancy{header: c.Header, known: c.Tenants} }

// tenant returns the tenant in the values of the header, or a refusal with a text that existing
// clients expect.
func (t *tenancy) tenant(values []string) (string, *Denied) {
	switch {
	case len(values) == 0 || values[0] == "":
		return "", &Denied{Reason: ReasonTenant, Msg: "missing tenant header"}
	case len(values) > 1:
		return "", &Denied{Reason: ReasonTenant, Msg: "extra tenant header"}
	case !validTenant(values[0]), len(t.known) > 0 && !slices.Contains(t.known, values[0]):
		return "", &Denied{Reason: ReasonTenant, Msg: "unknown tenant"}
	}
	return values[0], nil
}

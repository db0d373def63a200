package tracestore

import "context"

// Catalog lists services and operations. Lists are sorted, contain no duplicates, and contain only
// names of spans that are still stored.
type Catalog interface {
	// Services returns the service names.
	Services(ctx context.Context, tenant string) ([]string, error)
	// Operations returns the operations of a service. A kind other than "" restricts them to that
	// span kind.
	Operations(ctx context.Context, tenant, service, kind string) ([]Operation, error)
}

// Operation is a span name of a service with the kind of its spans: `client`, `server`, `producer`,
// `consumer`, `internal` or "".
type Operation struct{ Name, Kind string }

// AttributeCatalog lists attribute keys and values, for completion in user interfaces. Lists are
// sorted, contain no duplicates, and have at most limit elements (0: 1000). The key
// otlpdata.FlagsAttribute is internal to the payload: it is not listed and has no values.
type AttributeCatalog interface {
	// AttributeKeys returns the attribute keys with a prefix, of all attribute scopes.
	AttributeKeys(ctx context.Context, tenant, prefix string, limit int) ([]string, error)
	// AttributeValues returns the text forms of the values of a key that start with a prefix.
	AttributeValues(ctx context.Context, tenant, key, prefix string, limit int) ([]string, error)
}

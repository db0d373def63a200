package tracestore

import "context"

// Catalog lists services, operations and attributes. Lists are sorted and contain no duplicates;
// lists of services and operations contain only names of spans that are still stored. The caller
// must not modify a list. With a DamagedError, a list contains what could be read.
//
// Attributes are listed for completion in user interfaces, at most limit of them; a limit of 0
// means 1000. The key otlpdata.FlagsAttribute is internal to the payload: it is not listed and has
// no values. Stores of other programs do not list attributes: the error matches ErrUnsupported. Nor
// do they implement Aggregator.
type Catalog interface {
	// Services returns the first service names that q selects. more reports whether q selects
	// others as well.
	Services(ctx context.Context, tenant string, q NameQuery) (names []string, more bool, err error)
	// Operations returns the first operations of a service that q selects, by name, then kind. A
	// kind other than "" restricts them to that span kind. more is as in Services.
	Operations(ctx context.Context, tenant, service, kind string, q NameQuery) (ops []Operation, more bool, err error)
	// AttributeKeys returns the attribute keys with a prefix, of all attribute scopes.
	AttributeKeys(ctx context.Context, tenant, prefix string, limit int) ([]string, error)
	// AttributeValues returns the text forms of the values of a key that start with a prefix.
	AttributeValues(ctx context.Context, tenant, key, prefix string, limit int) ([]string, error)
}

// NameQuery selects a part of a list of names. The zero value selects as many names as the store
// lists in one call.
type NameQuery struct {
	Prefix string // names that begin with it
	Limit  int    // maximum number of elements; 0: the maximum of the store
}

// Operation is a span name of a service with the kind of its spans: `client`, `server`, `producer`,
// `consumer`, `internal` or "".
type Operation struct{ Name, Kind string }

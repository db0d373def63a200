package source

// Catalog is implemented by sources that know the names of their services and operations without their vocabulary. They are comparable, and
// what one says is kept while it is in a view: it never changes.
type Catalog interface {
	// Services returns the services of all tenants that the source has spans of, in any order, each once. It must not be changed. An
	// error is a *DamageError.
	Services() ([]Service, error)
}

// Service is a service of a tenant.
type Service struct {
	Tenant, Name string
	// Operations are the names of its spans, as sent, and their kinds; each once.
	Operations []Operation
	// NamesInRows: some spans have names that are not among Operations but in their rows.
	NamesInRows bool
}

// Operation is a span name and a kind, as otlpdata.Span has them.
type Operation struct {
	Name string
	Kind int32
}

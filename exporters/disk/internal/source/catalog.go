package source

import (
	"cmp"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// Catalog is implemented by sources that list services and operations without their vocabulary. The
// names of such a source never change. An error is a *DamageError, or an error of determining which
// rows are visible. Each name is passed once, as lists show it (otlpdata.Span.Operation and
// KindName), and is valid only during the call of visit.
type Catalog interface {
	// EachService calls visit with the services of a tenant, in ascending order from the given name
	// on, until visit returns false. missing reports that the service has operations whose names
	// are stored in rows and unknown to EachOperation.
	EachService(tenant, from string, visit func(name []byte, missing bool) bool) error
	// EachOperation calls visit with the operations of a service, in ascending order of name and
	// kind from the given name on, until visit returns false.
	EachOperation(tenant, service, from string, visit func(name []byte, kind string) bool) error
}

// Services is implemented by sources that can rule out services without their vocabulary.
type Services interface {
	// MayHaveService reports whether a span of the source may belong to a service of a tenant.
	MayHaveService(tenant, service string) bool
}

// Service is a service of a tenant.
type Service struct {
	Tenant, Name string
	// Operations are the names, as sent, and kinds of its spans, each once.
	Operations []Operation
	// NamesInRows reports whether spans have further names, which are stored in rows.
	NamesInRows bool
}

// Operation is a name and a kind of spans, as in otlpdata.Span.
type Operation struct {
	Name string
	Kind int32
}

// Compare orders services by tenant and name.
func (s Service) Compare(o Service) int {
	return cmp.Or(cmp.Compare(s.Tenant, o.Tenant), cmp.Compare(s.Name, o.Name))
}

// Compare orders operations by name and kind.
func (o Operation) Compare(p Operation) int {
	return cmp.Or(cmp.Compare(o.Name, p.Name), cmp.Compare(o.Kind, p.Kind))
}

// ServicesOf returns the services of a vocabulary. Services and operations are sorted and share
// texts with the vocabulary. Shapes whose definitions were lost are skipped.
func ServicesOf(t *rows.Tables) (services []Service) {
	index := make(map[rows.Service]int)
	for i := range t.Shapes {
		shape := &t.Shapes[i]
		if shape.Service == "" { // only if the definition was lost
			continue
		}
		of := rows.Service{Tenant: shape.Tenant, Name: shape.Service}
		at, known := index[of]
		if !known {
			at = len(services)
			index[of] = at
			services = append(services, Service{Tenant: of.Tenant, Name: of.Name})
		}
		if shape.NameInRow {
			services[at].NamesInRows = true
		} else {
			services[at].Operations = append(services[at].Operations, Operation{Name: shape.Name, Kind: shape.Kind})
		}
	}
	for i := range services {
		ops := services[i].Operations
		slices.SortFunc(ops, Operation.Compare)
		services[i].Operations = slices.Compact(ops)
	}
	slices.SortFunc(services, Service.Compare)
	return services
}

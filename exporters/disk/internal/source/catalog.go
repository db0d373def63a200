package source

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

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

// Compare orders services by tenant and name.
func (s Service) Compare(o Service) int {
	return cmp.Or(cmp.Compare(s.Tenant, o.Tenant), cmp.Compare(s.Name, o.Name))
}

// Compare orders operations by name and kind.
func (o Operation) Compare(p Operation) int {
	return cmp.Or(cmp.Compare(o.Name, p.Name), cmp.Compare(o.Kind, p.Kind))
}

// ServicesOf returns the services of a vocabulary, sorted, as are their operations, and how many operations they have together. They share
// no memory with it. Shapes that were lost are passed over.
func ServicesOf(t *rows.Tables) (services []Service, operations int) {
	index := make(map[rows.Service]int)
	for i := range t.Shapes {
		shape := &t.Shapes[i]
		if shape.Service == "" { // it never is, but where a shape was lost
			continue
		}
		of := rows.Service{Tenant: shape.Tenant, Name: shape.Service}
		at, known := index[of]
		if !known {
			at = len(services)
			index[of] = at
			services = append(services, Service{Tenant: strings.Clone(of.Tenant), Name: strings.Clone(of.Name)})
		}
		if shape.NameInRow {
			services[at].NamesInRows = true
		} else {
			services[at].Operations = append(services[at].Operations, Operation{Name: shape.Name, Kind: shape.Kind})
		}
	}
	for i := range services {
		services[i].Operations = distinct(services[i].Operations)
		operations += len(services[i].Operations)
	}
	slices.SortFunc(services, Service.Compare)
	return services, operations
}

// distinct returns a sorted copy without repetitions.
func distinct(all []Operation) []Operation {
	slices.SortFunc(all, Operation.Compare)
	all = slices.Clone(slices.Compact(all))
	for i := range all {
		all[i].Name = strings.Clone(all[i].Name)
	}
	return all
}

package source

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// Catalog is implemented by sources that know the names of their services and operations without
// reading their vocabulary. Such a source is comparable and its names never change. They may be
// kept while it is part of a view.
type Catalog interface {
	// Services returns the services of all tenants with spans in the source, each once, in any
	// order. The caller must not change the list. An error is a *DamageError.
	Services() ([]Service, error)
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

// ServicesOf returns the services of a vocabulary and the number of their operations. Services and
// operations are sorted and share no memory with the vocabulary. Shapes whose definitions were lost
// are skipped.
func ServicesOf(t *rows.Tables) (services []Service, operations int) {
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

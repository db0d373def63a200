package namelist

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Builder builds lists. Services are added in ascending order of tenant and name, and operations in
// ascending order of tenant, service, name and kind. Duplicates are ignored. The zero value is
// empty.
type Builder struct {
	services, operations pageWriter
	key                  []byte
	unlisted             bool
}

// Service adds a service. missing reports whether it has operations that are not added. A name that
// is too long for a list is left out, see Unlisted.
func (b *Builder) Service(tenant, name string, missing bool) {
	flags := byte(0)
	if missing {
		flags = operationsMissing
	}
	b.key = append(appendPart(appendPart(b.key[:0], tenant), name), flags)
	if len(b.key) > maxKey {
		b.unlisted = true
		return
	}
	b.services.add(b.key)
}

// Operation adds an operation, and reports whether it fits into the list.
func (b *Builder) Operation(tenant, service, name, kind string) bool {
	code, ok := kindByte(kind)
	b.key = append(appendPart(appendPart(appendPart(b.key[:0], tenant), service), name), code)
	if !ok || len(b.key) > maxKey {
		return false
	}
	b.operations.add(b.key)
	return true
}

// Unlisted reports whether a service was left out.
func (b *Builder) Unlisted() bool { return b.unlisted }

// Finish returns the pages of services and of operations, and the directory of both.
func (b *Builder) Finish() (services, operations, directory []byte) {
	for _, w := range []*pageWriter{&b.services, &b.operations} {
		w.endPage()
		directory = append(binary.AppendUvarint(directory, uint64(w.count)), w.directory...)
	}
	return b.services.pages, b.operations.pages, directory
}

// Lists are the services of all tenants and their operations. The pages are in memory or in a file.
// They are safe for concurrent use.
type Lists struct {
	services, operations pages
	size                 int64
}

// Open decodes a directory, which it retains. services and operations are the lengths of the pages.
func Open(directory []byte, services, operations int64) (*Lists, error) {
	l := &Lists{size: int64(len(directory))}
	var err error
	if l.services, directory, err = readPages(directory); err != nil {
		return nil, err
	}
	if l.operations, directory, err = readPages(directory); err != nil {
		return nil, err
	}
	if len(directory) > 0 || l.services.length != services || l.operations.length != operations {
		return nil, errMalformed
	}
	return l, nil
}

// Lists returns the lists in memory. The Builder must not be used afterwards.
func (b *Builder) Lists() *Lists {
	services, operations, directory := b.Finish()
	l, err := Open(directory, int64(len(services)), int64(len(operations)))
	if err != nil {
		panic(err) // the Builder wrote it
	}
	l.services.memory, l.operations.memory = services, operations
	l.size += int64(cap(services) + cap(operations))
	return l
}

// Of returns lists in memory. Services must be sorted, without duplicates.
func Of(services []source.Service) *Lists {
	var b Builder
	var ops []tracestore.Operation
	for i := range services {
		s := &services[i]
		ops = ops[:0]
		for _, o := range s.Operations {
			shown := otlpdata.Span{Name: o.Name, Kind: o.Kind}
			ops = append(ops, tracestore.Operation{Name: shown.Operation(), Kind: shown.KindName()})
		}
		slices.SortFunc(ops, func(a, b tracestore.Operation) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
		})
		missing := s.NamesInRows
		for _, o := range ops {
			missing = !b.Operation(s.Tenant, s.Name, o.Name, o.Kind) || missing
		}
		b.Service(s.Tenant, s.Name, missing)
	}
	return b.Lists()
}

// Memory returns the approximate size in bytes.
func (l *Lists) Memory() int64 {
	return l.size + int64(len(l.services.list)+len(l.operations.list))*int64(unsafe.Sizeof(page{}))
}

// EachService calls visit with the services of a tenant, in ascending order from the given name on,
// until visit returns false. missing reports whether the service has operations that are not in the
// list. name is valid during the call. read reads from the pages of services; it is not called if
// the pages are in memory.
func (l *Lists) EachService(read Read, tenant, from string, visit func(name []byte, missing bool) bool) error {
	key := appendPart(nil, tenant)
	prefix := bytes.Clone(key)
	return eachPart(&l.services, read, prefix, from, func(name []byte, flags byte) bool { return visit(name, flags&operationsMissing != 0) })
}

// EachOperation calls visit with the operations of a service, in ascending order of name and kind
// from the given name on, until visit returns false. name is valid during the call. read is as in
// EachService, for the pages of operations.
func (l *Lists) EachOperation(read Read, tenant, service, from string, visit func(name []byte, kind string) bool) error {
	prefix := appendPart(appendPart(nil, tenant), service)
	wrong := false
	err := eachPart(&l.operations, read, prefix, from, func(name []byte, kind byte) bool {
		if wrong = int(kind) >= len(kindTexts); wrong {
			return false
		}
		return visit(name, kindTexts[kind])
	})
	if wrong && err == nil {
		err = errMalformed
	}
	return err
}

// eachPart visits the keys that begin with a prefix and whose next part is not below from. The
// prefix consists of complete parts.
func eachPart(p *pages, read Read, prefix []byte, from string, visit func(text []byte, last byte) bool) error {
	wrong := false
	err := p.each(appendText(bytes.Clone(prefix), from), read, func(key []byte) bool {
		if !bytes.HasPrefix(key, prefix) {
			return false
		}
		part, last, ok := lastPart(key, len(prefix))
		if wrong = !ok; wrong {
			return false
		}
		return visit(textOf(part), last)
	})
	if wrong && err == nil {
		err = errMalformed
	}
	return err
}

// Verify checks all names. services and operations are the pages.
func (l *Lists) Verify(services, operations []byte) error {
	if err := l.services.verify(services); err != nil {
		return err
	}
	return l.operations.verify(operations)
}

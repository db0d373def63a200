package names

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// maxNameBytes is the maximum size of the names in one list.
const maxNameBytes = 4 << 20

// checkEvery is the number of names after which the context is checked again.
const checkEvery = 1 << 12

// nameList holds the first names that a query selects in the merged sources: services, or
// operations of a service. It owns its names.
type nameList struct {
	query tracestore.NameQuery
	list  []tracestore.Operation // sorted, distinct; at most one more than the limit of the query
	cut   bool                   // names may be missing for another reason than the limit
	brief bool                   // made despite damage: remake it for the next query
	names []string               // of services, when the list is complete
	// Sources in which names of the service are stored in rows only.
	incomplete []identity
}

func newNameList(q tracestore.NameQuery) *nameList { return &nameList{query: q} }

// clone returns a list to which names can be added.
func (l *nameList) clone() *nameList {
	return &nameList{query: l.query, list: slices.Clip(l.list), cut: l.cut, brief: l.brief, incomplete: slices.Clip(l.incomplete)}
}

// first returns as many elements as the query requests.
func (l *nameList) first() []tracestore.Operation {
	n := min(len(l.list), l.query.Limit)
	return l.list[:n:n]
}

// more reports whether the query selects further names.
func (l *nameList) more() bool { return l.cut || len(l.list) > l.query.Limit }

// complete ends the making of a list.
func (l *nameList) complete(k listKey) {
	if k.service != "" {
		return
	}
	l.names = make([]string, 0, min(len(l.list), l.query.Limit))
	for _, op := range l.first() {
		l.names = append(l.names, op.Name)
	}
}

// memory returns the approximate size in bytes.
func (l *nameList) memory() int64 {
	const fixed = 400 // overhead of maps and lists
	n := fixed + int64(cap(l.list))*int64(unsafe.Sizeof(tracestore.Operation{})) + int64(cap(l.names))*int64(unsafe.Sizeof(""))
	for i := range l.list {
		n += int64(len(l.list[i].Name))
	}
	return n
}

// merge adds the names that each passes to visit, in ascending order of name and kind. Names that
// do not fit into the list are not needed: visit then returns false, and each ends. After an error,
// the list is unchanged.
func (l *nameList) merge(ctx context.Context, each func(visit func(name []byte, kind string) bool) error) error {
	m := merging{from: l.list, most: l.query.Limit + 1}
	visited := 0
	err := each(func(name []byte, kind string) bool {
		if visited++; visited%checkEvery == 0 && ctx.Err() != nil {
			return false
		}
		prefix := l.query.Prefix
		return len(name) >= len(prefix) && string(name[:len(prefix)]) == prefix && m.add(name, kind)
	})
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return err
	}
	var full bool
	l.list, full = m.finish()
	l.cut = l.cut || full
	return nil
}

// merging is the union of a list and names that are added in order. It copies the list only if a
// name is new.
type merging struct {
	from  []tracestore.Operation
	next  int // number of names of from that were taken
	most  int // maximum length of the union
	out   []tracestore.Operation
	fresh bool // a name was new: out has the union so far
	bytes int  // of the names in out
}

// add adds a name and reports whether further names may fit.
func (m *merging) add(name []byte, kind string) bool {
	order := 1
	for ; m.next < len(m.from); m.next++ {
		if order = compareName(m.from[m.next], name, kind); order >= 0 {
			break
		}
		m.take(m.from[m.next])
	}
	if m.full() {
		return false
	}
	if m.next < len(m.from) && order == 0 {
		m.take(m.from[m.next])
		m.next++
		return true
	}
	if !m.fresh {
		m.fresh, m.out = true, make([]tracestore.Operation, 0, min(m.most, 2*len(m.from)+16))
		for _, op := range m.from[:m.next] {
			m.take(op)
		}
	}
	m.take(tracestore.Operation{Name: string(name), Kind: kind})
	return true
}

func (m *merging) full() bool {
	if !m.fresh {
		return m.next >= m.most
	}
	return len(m.out) >= m.most || m.bytes > maxNameBytes
}

func (m *merging) take(op tracestore.Operation) {
	if m.fresh && !m.full() {
		m.out = append(m.out, op)
		m.bytes += len(op.Name)
	}
}

// finish returns the union. tooLarge reports that it was cut because of the size of the names.
func (m *merging) finish() (union []tracestore.Operation, tooLarge bool) {
	if !m.fresh {
		return m.from, false
	}
	for _, op := range m.from[m.next:] {
		m.take(op)
	}
	return m.out, m.bytes > maxNameBytes
}

// compareName compares an operation with a name and a kind.
func compareName(op tracestore.Operation, name []byte, kind string) int {
	switch {
	case op.Name < string(name):
		return -1
	case op.Name > string(name):
		return 1
	}
	return strings.Compare(op.Kind, kind)
}

func compareOperations(a, b tracestore.Operation) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
}

// damageOf returns the damage that an error reports, or nil.
func damageOf(err error) *source.DamageError {
	var d *source.DamageError
	if errors.As(err, &d) {
		return d
	}
	return nil
}

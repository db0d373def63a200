package tombstone

import (
	"context"
	"errors"
	"slices"
	"weak"

	"github.com/tracing-backend/tracing/exporters/disk/internal/namelist"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// findVocabulary finds out which shapes, resources and services visible rows have.
func (e *evaluation) findVocabulary(ctx context.Context, src source.Source, t *rows.Tables,
	infos []source.BlockInfo) error {
	e.shapes, e.resources = make([]bool, len(t.Shapes)), make([]bool, len(t.Resources))
	var list []source.BlockShape
	for i := range infos {
		if h := e.blocks[i]; h != nil && !h.unread {
			set(e.shapes, h.shapes)
			continue
		}
		var known bool
		if list, known = src.BlockShapes(list[:0], i); !known && infos[i].Rows > 0 {
			setAll(e.shapes)
		}
		for _, s := range list {
			set(e.shapes, []uint32{s.Shape})
		}
	}
	if err := e.findResources(ctx, src, e.undecidedResources(t), infos); err != nil {
		return err
	}
	if l := namesOf(&e.visibleTables(t).Tables); l.Memory() <= maxNames {
		e.names = l
	}
	return nil
}

// maxNames is the maximum size in bytes of the lists of names that an evaluation keeps. Larger
// lists are built from the vocabulary each time.
const maxNames = 512 << 10

// undecidedResources sets e.resources where it can be decided without reading blocks, and returns
// the other resources: resources of hidden rows of services with visible rows.
func (e *evaluation) undecidedResources(t *rows.Tables) map[uint32]struct{} {
	undecided := make(map[uint32]struct{})
	for _, h := range e.blocks {
		if h.bits == nil && h.count > 0 { // not read: may have had any resource
			for i := range t.Resources {
				undecided[uint32(i)] = struct{}{}
			}
		}
		for _, r := range h.hiddenResources {
			undecided[r] = struct{}{}
		}
	}
	for _, h := range e.blocks {
		for _, r := range h.resources {
			delete(undecided, r)
		}
	}
	visible := make(map[rows.Service]bool)
	for i := range t.Shapes {
		if e.shapes[i] {
			visible[rows.Service{Tenant: t.Shapes[i].Tenant, Name: t.Shapes[i].Service}] = true
		}
	}
	for i := range t.Resources {
		r := &t.Resources[i]
		_, isUndecided := undecided[uint32(i)]
		if !visible[rows.Service{Tenant: r.Tenant, Name: r.Service}] {
			delete(undecided, uint32(i))
			continue
		}
		e.resources[i] = !isUndecided
	}
	return undecided
}

// findResources reads blocks without hidden rows until every undecided resource was found or all
// blocks were read. It sets e.resources for the resources that it finds.
func (e *evaluation) findResources(ctx context.Context, src source.Source, undecided map[uint32]struct{},
	infos []source.BlockInfo) error {
	for i := 0; i < len(infos) && len(undecided) > 0; i++ {
		if h := e.blocks[i]; h != nil && !h.unread || infos[i].Rows == 0 {
			continue
		}
		list, err := blockResources(ctx, src, i)
		if d := (*source.DamageError)(nil); errors.As(err, &d) && ctx.Err() == nil {
			continue // queries cannot read the block either
		}
		if err != nil {
			return err
		}
		for _, r := range list {
			if _, found := undecided[r]; found {
				delete(undecided, r)
				set(e.resources, []uint32{r})
			}
		}
	}
	return nil
}

// blockResources returns the distinct resources of a block.
func blockResources(ctx context.Context, src source.Source, number int) ([]uint32, error) {
	b, err := src.Open(ctx, number)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	list, err := b.Resources()
	if err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list), nil
}

func set(list []bool, ids []uint32) {
	for _, id := range ids {
		if int(id) < len(list) {
			list[id] = true
		}
	}
}

func setAll(list []bool) {
	for i := range list {
		list[i] = true
	}
}

// visibleTables is a vocabulary in which shapes and resources without visible rows are blank.
type visibleTables struct {
	rows.Tables
	inner *rows.Tables
}

// Tables returns the vocabulary. Ids are the same as in the inner source. Shapes and resources that
// only hidden rows have are blank, like those lost by damage.
func (f *Filter) Tables() (*rows.Tables, error) {
	e, err := f.evaluate(context.Background())
	if err != nil {
		return nil, err
	}
	t, err := f.inner.Tables()
	if err != nil {
		return nil, err
	}
	// The inner source may drop its vocabulary to save memory. A weak pointer lets the garbage
	// collector free this copy as well.
	if p := f.tables.Load(); p != nil {
		if v := p.Value(); v != nil && v.inner == t {
			return &v.Tables, nil
		}
	}
	if !slices.Contains(e.shapes, false) && !slices.Contains(e.resources, false) {
		return t, nil
	}
	v := e.visibleTables(t)
	p := weak.Make(v)
	f.tables.Store(&p)
	return &v.Tables, nil
}

func (e *evaluation) visibleTables(t *rows.Tables) *visibleTables {
	v := &visibleTables{Tables: *t, inner: t}
	v.Shapes, v.Resources = slices.Clone(t.Shapes), slices.Clone(t.Resources)
	for i := range v.Shapes {
		if i < len(e.shapes) && !e.shapes[i] {
			v.Shapes[i].Tenant, v.Shapes[i].Service, v.Shapes[i].Name = "", "", ""
		}
	}
	for i := range v.Resources {
		if i < len(e.resources) && !e.resources[i] {
			v.Resources[i] = rows.Resource{}
		}
	}
	return v
}

// EachService implements source.Catalog.
func (f *Filter) EachService(tenant, from string, visit func(name []byte, missing bool) bool) error {
	inner, l, err := f.names()
	if err != nil {
		return err
	}
	if inner != nil {
		return inner.EachService(tenant, from, visit)
	}
	return l.EachService(nil, tenant, from, visit)
}

// EachOperation implements source.Catalog.
func (f *Filter) EachOperation(tenant, service, from string, visit func(name []byte, kind string) bool) error {
	inner, l, err := f.names()
	if err != nil {
		return err
	}
	if inner != nil {
		return inner.EachOperation(tenant, service, from, visit)
	}
	return l.EachOperation(nil, tenant, service, from, visit)
}

// names returns the catalog of the inner source if it is also that of the visible rows, otherwise
// lists in memory.
func (f *Filter) names() (inner source.Catalog, _ *namelist.Lists, _ error) {
	e, err := f.evaluate(context.Background())
	if err != nil {
		return nil, nil, err
	}
	if e.names != nil {
		return nil, e.names, nil
	}
	if c, ok := f.inner.(source.Catalog); ok && e.shapes == nil {
		return c, nil, nil
	}
	t, err := f.inner.Tables()
	if err != nil {
		return nil, nil, err
	}
	return nil, namesOf(&e.visibleTables(t).Tables), nil
}

func namesOf(t *rows.Tables) *namelist.Lists { return namelist.Of(source.ServicesOf(t)) }

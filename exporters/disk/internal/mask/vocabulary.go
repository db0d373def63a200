package mask

import (
	"context"
	"errors"
	"slices"
	"weak"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// vocabulary finds out which shapes and resources rows that are left have.
func (v *survey) vocabulary(ctx context.Context, src source.Source, t *rows.Tables, infos []source.BlockInfo) error {
	v.shapes, v.resources = make([]bool, len(t.Shapes)), make([]bool, len(t.Resources))
	var list []source.BlockShape
	for i := range infos {
		if m := v.blocks[i]; m != nil && !m.unread {
			set(v.shapes, m.shapes)
			continue
		}
		var known bool
		if list, known = src.BlockShapes(list[:0], i); !known && infos[i].Rows > 0 {
			fill(v.shapes)
		}
		for _, s := range list {
			set(v.shapes, []uint32{s.Shape})
		}
	}
	if err := v.findResources(ctx, src, v.suspects(t), infos); err != nil {
		return err
	}
	if services, operations := source.ServicesOf(&v.cut(t).Tables); operations <= maxKept {
		v.services = services
	}
	return nil
}

// maxKept is how many names of operations a survey keeps at most, so that a list of services needs no vocabulary.
const maxKept = 10_000

// suspects marks the resources that are left for sure, and returns those that may be or not: those that hidden rows have, of services that
// others have as well.
func (v *survey) suspects(t *rows.Tables) map[uint32]struct{} {
	suspects := make(map[uint32]struct{})
	for _, m := range v.blocks {
		if m.bits == nil && m.n > 0 { // it was not read: it may be any
			for i := range t.Resources {
				suspects[uint32(i)] = struct{}{}
			}
		}
		for _, r := range m.gone {
			suspects[r] = struct{}{}
		}
	}
	for _, m := range v.blocks {
		for _, r := range m.resources {
			delete(suspects, r)
		}
	}
	left := make(map[rows.Service]bool)
	for i := range t.Shapes {
		if v.shapes[i] {
			left[rows.Service{Tenant: t.Shapes[i].Tenant, Name: t.Shapes[i].Service}] = true
		}
	}
	for i := range t.Resources {
		r := &t.Resources[i]
		_, suspect := suspects[uint32(i)]
		if !left[rows.Service{Tenant: r.Tenant, Name: r.Service}] {
			delete(suspects, uint32(i))
			continue
		}
		v.resources[i] = !suspect
	}
	return suspects
}

// findResources reads blocks without hidden rows until all suspects were met, and marks these.
func (v *survey) findResources(ctx context.Context, src source.Source, suspects map[uint32]struct{}, infos []source.BlockInfo) error {
	for i := 0; i < len(infos) && len(suspects) > 0; i++ {
		if m := v.blocks[i]; m != nil && !m.unread || infos[i].Rows == 0 {
			continue
		}
		list, err := resourcesOf(ctx, src, i)
		if d := (*source.DamageError)(nil); errors.As(err, &d) && ctx.Err() == nil {
			continue // nobody can read what it has
		}
		if err != nil {
			return err
		}
		for _, r := range list {
			if _, met := suspects[r]; met {
				delete(suspects, r)
				set(v.resources, []uint32{r})
			}
		}
	}
	return nil
}

// resourcesOf returns the distinct resources of a block.
func resourcesOf(ctx context.Context, src source.Source, number int) ([]uint32, error) {
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

func fill(list []bool) {
	for i := range list {
		list[i] = true
	}
}

// cutTables is a vocabulary in which shapes and resources without rows are blank.
type cutTables struct {
	rows.Tables
	of *rows.Tables
}

// Tables returns the vocabulary. Ids are those of the source; what only hidden rows have is blank, as if it had been lost.
func (s *Source) Tables() (*rows.Tables, error) {
	v, err := s.survey(context.Background())
	if err != nil {
		return nil, err
	}
	t, err := s.src.Tables()
	if err != nil {
		return nil, err
	}
	// The source may forget its vocabulary to save memory, so the cut one is not kept from the garbage collector either.
	if p := s.tables.Load(); p != nil {
		if c := p.Value(); c != nil && c.of == t {
			return &c.Tables, nil
		}
	}
	if !slices.Contains(v.shapes, false) && !slices.Contains(v.resources, false) {
		return t, nil
	}
	c := v.cut(t)
	p := weak.Make(c)
	s.tables.Store(&p)
	return &c.Tables, nil
}

func (v *survey) cut(t *rows.Tables) *cutTables {
	c := &cutTables{Tables: *t, of: t}
	c.Shapes, c.Resources = slices.Clone(t.Shapes), slices.Clone(t.Resources)
	for i := range c.Shapes {
		if i < len(v.shapes) && !v.shapes[i] {
			c.Shapes[i].Tenant, c.Shapes[i].Service, c.Shapes[i].Name = "", "", ""
		}
	}
	for i := range c.Resources {
		if i < len(v.resources) && !v.resources[i] {
			c.Resources[i] = rows.Resource{}
		}
	}
	return c
}

// Services implements source.Catalog.
func (s *Source) Services() ([]source.Service, error) {
	v, err := s.survey(context.Background())
	if err != nil {
		return nil, err
	}
	if v.services != nil {
		return v.services, nil
	}
	if below, ok := s.src.(source.Catalog); ok && v.shapes == nil {
		return below.Services()
	}
	t, err := s.src.Tables()
	if err != nil {
		return nil, err
	}
	list, _ := source.ServicesOf(&v.cut(t).Tables)
	return list, nil
}

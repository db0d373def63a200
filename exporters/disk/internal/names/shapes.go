package names

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
)

// allSources returns the numbers of all sources.
func allSources(s *scan.Session) []int {
	out := make([]int, len(s.Sources))
	for i := range out {
		out[i] = i
	}
	return out
}

// eachShape calls f with the shapes of a tenant in some sources. Damaged vocabularies are recorded.
func eachShape(ctx context.Context, s *scan.Session, sources []int, tenant string,
	f func(src int, t *rows.Tables, id uint32, shape *rows.Shape)) error {
	for _, src := range sources {
		if err := ctx.Err(); err != nil {
			return err
		}
		t, err := s.Tables(src)
		if err != nil {
			return err
		}
		if t == nil {
			continue
		}
		for i := range t.Shapes {
			// Every shape has a service unless its definition is lost.
			if sh := &t.Shapes[i]; sh.Tenant == tenant && sh.Service != "" && scan.Readable(t, sh) {
				f(src, t, uint32(i), sh)
			}
		}
	}
	return nil
}

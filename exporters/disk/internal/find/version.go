package find

import (
	"context"
	"encoding/binary"
	"hash/fnv"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TraceVersion implements tracestore.Reader. The number also changes when a memtable with the trace
// is flushed and when segments are merged.
func (f *Finder) TraceVersion(ctx context.Context, tenant string, id otlpdata.TraceID) (v tracestore.TraceVersion, err error) {
	s := f.store.Begin()
	defer s.Release()
	h := fnv.New64a()
	for src := range s.Sources {
		if err := ctx.Err(); err != nil {
			return tracestore.TraceVersion{}, err
		}
		versioned, ok := s.Sources[src].(source.Versioned)
		if !ok {
			return tracestore.TraceVersion{}, tracestore.ErrUnsupported
		}
		number, stored, err := versioned.TraceVersion(tenant, id)
		if err = s.NoteDamage(src, scan.TracePart(id), 0, err); err != nil {
			return tracestore.TraceVersion{}, err
		}
		if number == 0 {
			continue
		}
		h.Write(binary.LittleEndian.AppendUint64([]byte(s.Sources[src].Name()), number)) //nolint:errcheck // never fails
		v.Number = h.Sum64()
		if stored.After(v.Stored) {
			v.Stored = stored
		}
	}
	if s.DamagedParts() == 0 { // lost files do not change the version
		return v, nil
	}
	return v, s.Damaged()
}

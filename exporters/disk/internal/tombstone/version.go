package tombstone

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

var _ source.Versioned = (*Filter)(nil)

// TraceVersion implements source.Versioned. The number depends on the version in the inner source
// and on the rules.
func (f *Filter) TraceVersion(tenant string, id otlpdata.TraceID) (number uint64, stored time.Time, err error) {
	inner, ok := f.inner.(source.Versioned)
	if !ok {
		return 0, time.Time{}, errors.ErrUnsupported
	}
	number, stored, err = inner.TraceVersion(tenant, id)
	if number == 0 || err != nil || f.filterFor(tenant).hides(id) {
		return 0, time.Time{}, err
	}
	h := fnv.New64a()
	var b []byte
	b = binary.LittleEndian.AppendUint64(b, number)
	for _, r := range f.Rules() {
		b = binary.LittleEndian.AppendUint64(b, r.Number)
	}
	h.Write(b) //nolint:errcheck // never fails
	return h.Sum64(), stored, nil
}

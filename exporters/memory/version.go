package memory

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TraceVersion implements tracestore.Reader. The number is random for each process, because
// another process has other spans.
func (e *exporter) TraceVersion(_ context.Context, tenant string, id otlpdata.TraceID) (v tracestore.TraceVersion, _ error) {
	blocks := e.find(tenant, id, e.snapshot())
	if len(blocks) == 0 {
		return v, nil
	}
	var b []byte
	for i := range blocks {
		b = binary.LittleEndian.AppendUint64(b, blocks[i].rows[0].seq)
		b = binary.LittleEndian.AppendUint64(b, uint64(len(blocks[i].rows)))
	}
	v.Number = max(maphash.Bytes(e.seed, b), 1)
	if stored := blocks[len(blocks)-1].stored; e.now().Sub(stored) < time.Minute {
		v.Stored = stored
	}
	return v, nil
}

package live

import (
	"encoding/binary"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// maxHalvings bounds the sampling: one in a million traces.
const maxHalvings = 20

// sample selects one in 2^halvings traces by their ids. A larger sample contains all traces of a
// smaller one.
type sample struct{ halvings uint }

// includes reports whether a trace is in the sample.
func (s sample) includes(id otlpdata.TraceID) bool { return mix(id)>>(64-s.halvings) == 0 }

// oneIn returns n if the sample contains one in n traces.
func (s sample) oneIn() int { return 1 << s.halvings }

// mix returns a hash of an id, because parts of ids can be times or zero.
func mix(id otlpdata.TraceID) uint64 {
	x := binary.BigEndian.Uint64(id[:8])*0x9e3779b97f4a7c15 ^ binary.BigEndian.Uint64(id[8:])
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

package source

import (
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Versioned is implemented by sources that can tell whether a trace has changed without reading it.
type Versioned interface {
	// TraceVersion returns a number that changes when the rows of a trace of a tenant change, 0 if
	// there are none. stored is when the last of them was stored, or zero if that is unknown.
	TraceVersion(tenant string, id otlpdata.TraceID) (number uint64, stored time.Time, err error)
}

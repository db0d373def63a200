package storewire

import (
	"cmp"
	"errors"

	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func putReasons(reasons tracestore.Reasons) []*store_v1.Reason {
	out := make([]*store_v1.Reason, len(reasons))
	for i, r := range reasons {
		out[i] = &store_v1.Reason{Kind: store_v1.ReasonKind(r.Kind), Store: []byte(r.Store), Text: []byte(r.Text)}
	}
	return out
}

func getReasons(reasons []*store_v1.Reason) (out tracestore.Reasons) {
	for _, m := range reasons {
		r := tracestore.Reason{Store: string(m.GetStore()), Text: cmp.Or(string(m.GetText()), "the answer is incomplete")}
		if _, known := store_v1.ReasonKind_name[int32(m.GetKind())]; known {
			r.Kind = tracestore.ReasonKind(m.GetKind())
		}
		out.Add(r)
	}
	return out
}

// PutDamage converts a DamagedError to a detail of a status.
func PutDamage(d *tracestore.DamagedError) *store_v1.Damage {
	out := &store_v1.Damage{Reasons: putReasons(d.Reasons)}
	if d.Err != nil {
		out.Cause = []byte(d.Err.Error())
	}
	return out
}

// GetDamage returns the DamagedError of a detail of a status.
func GetDamage(m *store_v1.Damage) *tracestore.DamagedError {
	out := &tracestore.DamagedError{Reasons: getReasons(m.GetReasons())}
	if cause := m.GetCause(); len(cause) > 0 {
		out.Err = errors.New(string(cause))
	}
	return out
}

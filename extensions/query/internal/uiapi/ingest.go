package uiapi

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/status"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// ingestAnswer is the data of GET /api/ui/v1/ingest: the spans that this process has received since
// it started, and the content of the store.
type ingestAnswer struct {
	Receives        bool             `json:"receives"` // this process has receivers
	Now             route.Nanos      `json:"now"`
	Since           route.Nanos      `json:"since"`
	Received        uint64           `json:"received"` // spans
	Refused         uint64           `json:"refused"`
	RefusedRequests uint64           `json:"refusedRequests"`
	Dropped         uint64           `json:"dropped"`
	Receivers       []receiverAnswer `json:"receivers"`
	Oldest          any              `json:"oldest"` // arrival; route.Nanos, or ""
	OldestStart     any              `json:"oldestStart"`
	NewestStart     any              `json:"newestStart"`
	StoredBytes     int64            `json:"storedBytes"`
	MaxBytes        int64            `json:"maxBytes"`
	Retention       int64            `json:"retention"`
}

type receiverAnswer struct {
	Name            string         `json:"name"`
	Protocol        string         `json:"protocol"`
	Endpoint        string         `json:"endpoint"` // addresses, separated by commas
	Received        uint64         `json:"received"`
	Refused         uint64         `json:"refused"`
	RefusedRequests uint64         `json:"refusedRequests"`
	Refusal         *refusalAnswer `json:"refusal,omitempty"`
}

type refusalAnswer struct {
	Reason string      `json:"reason"`
	At     route.Nanos `json:"at"`
}

// hiddenFromTenants is why a response is incomplete if requests must name their tenant.
const hiddenFromTenants = "numbers for all tenants together are not shown to tenants"

// ingest parses GET /api/ui/v1/ingest. If requests must name their tenant, the response has only
// the receivers and limits. An error of the store does not hide the received spans.
func (a *API) ingest(context.Context, url.Values) (route.Query, error) {
	return func(slot *core.Slot) (any, tracestore.Reasons, error) {
		out := &ingestAnswer{Now: route.NanosOf(a.backend.Now()), Oldest: "", OldestStart: "", NewestStart: "",
			Receivers: []receiverAnswer{}}
		out.Since = out.Now
		if a.intake != nil {
			in := a.intake()
			out.addIntake(&in, a.tenancy)
		}
		var missing tracestore.Reasons
		if a.tenancy {
			missing = tracestore.Because(tracestore.ReasonOther, hiddenFromTenants)
		}
		if store, ok := core.SlotAs[tracestore.UsageReporter](slot); ok {
			u, err := store.Usage(slot.Context(), slot.Tenant())
			switch {
			case err == nil:
				out.addUsage(&u, a.tenancy)
				if !a.tenancy && !u.Complete() {
					missing = tracestore.Because(tracestore.ReasonUnavailable, "not everything that is stored is counted: "+u.Text())
				}
			case !errors.Is(err, tracestore.ErrUnsupported):
				missing = tracestore.Because(tracestore.ReasonUnavailable, "the contents of the store are unknown: "+err.Error())
			}
		}
		return out, missing, nil
	}, nil
}

// addIntake adds the received spans; hide leaves out everything that depends on data.
func (out *ingestAnswer) addIntake(in *status.Intake, hide bool) {
	out.Receives, out.Since = len(in.Receivers) > 0, route.NanosOf(in.Since)
	for i := range in.Receivers {
		r := &in.Receivers[i]
		one := receiverAnswer{Name: r.Component, Protocol: r.Transport, Endpoint: strings.Join(r.Addresses, ", ")}
		if !hide {
			one.Received, one.Refused, one.RefusedRequests = r.Received, r.Refused, r.RefusedRequests
			if r.Refusal != nil {
				one.Refusal = &refusalAnswer{r.Refusal.Reason, route.NanosOf(r.Refusal.At)}
			}
		}
		out.Received += one.Received
		out.Refused += one.Refused
		out.RefusedRequests += one.RefusedRequests
		out.Receivers = append(out.Receivers, one)
	}
	if !hide {
		out.Dropped = in.Dropped
	}
}

// addUsage adds the content of the store; hide leaves out everything that depends on data.
func (out *ingestAnswer) addUsage(u *tracestore.Usage, hide bool) {
	out.MaxBytes, out.Retention = u.MaxBytes, int64(u.Retention/time.Nanosecond)
	if hide {
		return
	}
	out.StoredBytes = u.Bytes
	if !u.Oldest.IsZero() {
		out.Oldest = route.NanosOf(u.Oldest)
	}
	if u.OldestStart > 0 {
		out.OldestStart = route.Nanos(u.OldestStart)
	}
	if u.NewestStart > 0 {
		out.NewestStart = route.Nanos(u.NewestStart)
	}
}

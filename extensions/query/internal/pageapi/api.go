// Package pageapi serves /api/ui/v1, the API of the project's own web UI. It changes together with
// the UI.
//
// Times are decimal nanoseconds since the Unix epoch; in answers they are strings, because
// JavaScript numbers cannot represent them. Durations are written like `1.5s` in parameters and are
// numbers of nanoseconds in answers. Ids are hex digits in full length. Lists of many objects with
// the same members are columns: one object with a list for each member, all of the same length.
package pageapi

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// API is the handlers.
type API struct {
	backend *core.Backend
	version httpapi.Version
	tails   *Tails
	tenancy bool
	intake  func() status.Intake // nil: this process receives nothing
}

// Options configure an API.
type Options struct {
	Version httpapi.Version
	Tails   *Tails
	Tenancy bool // requests must name their tenant
	// Intake returns what this process has received. nil means nothing.
	Intake func() status.Intake
}

// New returns the API over a backend.
func New(b *core.Backend, o Options) *API {
	return &API{backend: b, version: o.Version, tails: o.Tails, tenancy: o.Tenancy, intake: o.Intake}
}

// Routes returns the routes of the API.
func (a *API) Routes() []httpapi.Route {
	return []httpapi.Route{
		{Pattern: "GET /api/ui/v1/config", Handler: a.config},
		{Pattern: "GET /api/ui/v1/search", Handler: a.search},
		{Pattern: "GET /api/ui/v1/heatmap", Handler: a.handler(core.OpAggregate, a.heatmap)},
		{Pattern: "GET /api/ui/v1/facets", Handler: a.handler(core.OpAggregate, a.facets)},
		{Pattern: "GET /api/ui/v1/compare", Handler: a.handler(core.OpAggregate, a.compare)},
		{Pattern: "GET /api/ui/v1/services", Handler: a.handler(core.OpGetPerformance, a.services)},
		{Pattern: "GET /api/ui/v1/errors", Handler: a.handler(core.OpGetErrors, a.errors)},
		{Pattern: "GET /api/ui/v1/changes", Handler: a.handler(core.OpGetChanges, a.changes)},
		{Pattern: "GET /api/ui/v1/ingest", Handler: a.handler(core.OpGetUsage, a.ingest)},
		{Pattern: "GET /api/ui/v1/keys", Handler: a.handler(core.OpGetTags, a.keys)},
		{Pattern: "GET /api/ui/v1/values", Handler: a.handler(core.OpGetTagValues, a.values)},
		{Pattern: "GET /api/ui/v1/outline/{id}", Handler: a.outline},
		{Pattern: "GET /api/ui/v1/outline/{id}/spans", Handler: a.spans},
		{Pattern: "GET /api/ui/v1/outline/{id}/find", Handler: a.find},
		{Pattern: "GET /api/ui/v1/tail", Handler: a.tail},
	}
}

// query asks the store. It returns the data of the answer and why the answer is incomplete, or "".
type query func(slot *core.Slot) (data any, incomplete string, err error)

// handler answers requests whose answer is one JSON value. parse reads the parameters; its errors
// are for the client.
func (a *API) handler(op core.Operation, parse func(ctx context.Context, v url.Values) (query, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := httpapi.Query(r)
		var run query
		if err == nil {
			run, err = parse(r.Context(), v)
		}
		if err != nil {
			httpapi.WriteError(w, statusOf(err), err.Error())
			return
		}
		slot, err := a.backend.Admit(r.Context())
		if err != nil {
			httpapi.Fail(a.backend, w, r, err)
			return
		}
		defer slot.Release()
		var data any
		var incomplete string
		err = a.backend.Measure(op, func() (_ int, err error) {
			data, incomplete, err = run(slot)
			names, _ := data.(namesAnswer)
			return len(names.Names), err
		})
		if err != nil {
			httpapi.Fail(a.backend, w, r, err)
			return
		}
		a.writeData(w, r, data, incomplete)
	}
}

// errUnsupported is matched by errors that say that the store cannot answer a request.
var errUnsupported = errors.New("store cannot")

func statusOf(err error) int {
	if errors.Is(err, errUnsupported) {
		return http.StatusNotImplemented
	}
	return http.StatusBadRequest
}

// writeData answers with one value. incomplete says why it is incomplete, or is "".
func (a *API) writeData(w http.ResponseWriter, r *http.Request, data any, incomplete string) {
	body, err := json.Marshal(data)
	if err != nil {
		httpapi.Fail(a.backend, w, r, err)
		return
	}
	var footer httpapi.Footer
	if incomplete != "" {
		footer.Errors = []httpapi.Error{{Msg: core.IncompleteText + incomplete}}
	}
	l := httpapi.NewList(w, r)
	defer l.Close()
	l.Stream().Buf = append(l.Stream().Buf, body...)
	a.backend.LogUndelivered(l.Finish("", footer))
}

// nanos is a number of nanoseconds that is a string in JSON.
type nanos uint64

// MarshalJSON implements json.Marshaler.
func (n nanos) MarshalJSON() ([]byte, error) {
	return append(strconv.AppendUint([]byte{'"'}, uint64(n), 10), '"'), nil
}

// nanosOf returns a time as nanoseconds since the Unix epoch, 0 for earlier times.
func nanosOf(t time.Time) nanos { return nanos(max(t.UnixNano(), 0)) }

// estimate returns the estimated total if a share of all items was counted.
func estimate(counted uint64, share float64) uint64 {
	if share <= 0 || share >= 1 {
		return counted
	}
	return uint64(min(math.Round(float64(counted)/share), math.MaxInt64))
}

// Package jaegerapi serves the HTTP JSON API that the Jaeger UI and existing clients use: traces,
// services, operations, dependencies, metrics, the archive and the transformation of OTLP.
package jaegerapi

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// API is the handlers.
type API struct{ backend *core.Backend }

// New returns the API over a backend.
func New(b *core.Backend) *API { return &API{backend: b} }

// Routes returns the routes of the API.
func (a *API) Routes() []httpapi.Route {
	return []httpapi.Route{
		{Pattern: "GET /api/traces", Handler: a.search},
		{Pattern: "GET /api/traces/{id}", Handler: a.trace},
		{Pattern: "POST /api/archive/{id}", Handler: a.archiveTrace},
		{Pattern: "POST /api/transform", Handler: a.transform},
		{Pattern: "GET /api/services", Handler: a.services},
		{Pattern: "GET /api/services/{service}/operations", Handler: a.operationNames},
		{Pattern: "GET /api/services/{rest...}", Handler: a.operationNames},
		{Pattern: "GET /api/operations", Handler: a.operations},
		{Pattern: "GET /api/dependencies", Handler: a.dependencies},
		{Pattern: "GET /api/metrics/latencies", Handler: a.latencies},
		{Pattern: "GET /api/metrics/calls", Handler: a.callRates},
		{Pattern: "GET /api/metrics/errors", Handler: a.errorRates},
		{Pattern: "GET /api/metrics/minstep", Handler: a.minStep},
	}
}

var errNoService = errors.New("parameter 'service' is required")

// services serves GET /api/services.
func (a *API) services(w http.ResponseWriter, r *http.Request) {
	names, err := a.backend.Services(r.Context(), tracestore.NameQuery{})
	if err != nil {
		httpapi.Fail(a.backend, w, r, err)
		return
	}
	a.writeNames(w, r, names.List, listFooter(len(names.List), names), "[]")
}

func (a *API) writeNames(w http.ResponseWriter, r *http.Request, names []string, footer httpapi.Footer, empty string) {
	httpapi.WriteList(a.backend, w, r, len(names), empty, footer,
		func(dst []byte, i int) []byte { return otlpdata.AppendJSONString(dst, names[i]) })
}

// listFooter returns the footer for a response with n names of a list.
func listFooter[T any](n int, names core.Names[T]) httpapi.Footer {
	f := httpapi.Footer{Total: n}
	if names.Cut {
		f.Limit = n
	}
	f.AddError(core.IncompleteMessage(names.Incomplete))
	return f
}

// operationNames serves GET /api/services/{service}/operations with each name once, regardless of
// span kinds.
func (a *API) operationNames(w http.ResponseWriter, r *http.Request) {
	service, ok := pathService(r)
	if !ok {
		http.NotFound(w, r)
		return
	}
	ops, err := a.backend.Operations(r.Context(), service, "", tracestore.NameQuery{})
	if once, bad := url.PathUnescape(service); err == nil && len(ops.List) == 0 && bad == nil && once != service {
		ops, err = a.backend.Operations(r.Context(), once, "", tracestore.NameQuery{}) // some clients escape the name twice
	}
	if err != nil {
		httpapi.Fail(a.backend, w, r, err)
		return
	}
	var names []string
	seen := make(map[string]bool, len(ops.List))
	for _, op := range ops.List {
		if !seen[op.Name] {
			seen[op.Name] = true
			names = append(names, op.Name)
		}
	}
	a.writeNames(w, r, names, listFooter(len(names), ops), "null")
}

// pathService returns the service in a path. Some clients do not escape slashes in its name.
func pathService(r *http.Request) (string, bool) {
	if s := r.PathValue("service"); s != "" {
		return s, true
	}
	return strings.CutSuffix(r.PathValue("rest"), "/operations")
}

// operations serves GET /api/operations.
func (a *API) operations(w http.ResponseWriter, r *http.Request) {
	params := r.URL.Query()
	service := params.Get("service")
	if service == "" {
		httpapi.WriteError(w, http.StatusBadRequest, errNoService.Error())
		return
	}
	ops, err := a.backend.Operations(r.Context(), service, params.Get("spanKind"), tracestore.NameQuery{})
	if err != nil {
		httpapi.Fail(a.backend, w, r, err)
		return
	}
	httpapi.WriteList(a.backend, w, r, len(ops.List), "[]", listFooter(len(ops.List), ops),
		func(dst []byte, i int) []byte { return httpapi.AppendOperation(dst, &ops.List[i]) })
}

// Package v3 serves the HTTP JSON API below /api/v3, whose traces are OTLP JSON.
package v3

import (
	"encoding/json"
	"net/http"

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
		{Pattern: "GET /api/v3/services", Handler: a.services},
		{Pattern: "GET /api/v3/operations", Handler: a.operations},
		{Pattern: "GET /api/v3/traces", Handler: a.search},
		{Pattern: "GET /api/v3/traces/{id}", Handler: a.trace},
		{Pattern: "GET /api/v3/trace-summaries", Handler: a.summaries},
	}
}

// apiError is the member `error` of an error response.
type apiError struct {
	HTTPCode int    `json:"httpCode"`
	Message  string `json:"message"`
}

func writeError(w http.ResponseWriter, status int, msg string) {
	body, err := json.Marshal(struct {
		Error apiError `json:"error"`
	}{apiError{status, msg}})
	if err != nil {
		body = []byte(msg)
	}
	http.Error(w, string(body), status)
}

// fail responds to a request whose query failed, unless the client disconnected.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return
	}
	status, text := a.backend.HTTPError(w.Header(), err)
	writeError(w, status, text)
}

// services serves GET /api/v3/services.
func (a *API) services(w http.ResponseWriter, r *http.Request) {
	names, err := a.backend.Services(r.Context(), tracestore.NameQuery{})
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.writeList(w, r, "services", core.IncompleteMessage(names.Incomplete), len(names.List),
		func(dst []byte, i int) []byte { return otlpdata.AppendJSONString(dst, names.List[i]) })
}

// operations serves GET /api/v3/operations.
func (a *API) operations(w http.ResponseWriter, r *http.Request) {
	v, err := httpapi.Query(r)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	found, err := a.backend.Operations(r.Context(), v.Get("service"), param(v, "spanKind"), tracestore.NameQuery{})
	if err != nil {
		a.fail(w, r, err)
		return
	}
	ops := withKinds(found.List)
	a.writeList(w, r, "operations", core.IncompleteMessage(found.Incomplete), len(ops),
		func(dst []byte, i int) []byte { return httpapi.AppendOperation(dst, &ops[i]) })
}

// withKinds gives operations without a kind the kind internal, as OpenTelemetry does, and removes
// the resulting duplicates. For each name, the operation without a kind must come first.
func withKinds(ops []tracestore.Operation) (out []tracestore.Operation) {
	const internal = "internal"
	without := "" // the last name that had an operation without a kind
	for i, op := range ops {
		switch {
		case op.Kind == "":
			without, op.Kind = op.Name, internal
		case op.Kind == internal && op.Name == without && i > 0:
			continue
		}
		out = append(out, op)
	}
	return out
}

// writeList responds with an object that has a list of n elements, and says why it is incomplete if
// the reason is not "".
func (a *API) writeList(
	w http.ResponseWriter, r *http.Request, name, incomplete string, n int, element func(dst []byte, i int) []byte,
) {
	s := httpapi.NewStream(w, r)
	defer s.Close()
	s.Buf = append(append(append(s.Buf, `{"`...), name...), `":[`...)
	for i := range n {
		if s.Add(func(dst []byte) ([]byte, error) { return element(httpapi.Comma(dst, i), i), nil }) != nil {
			return // the client disconnected
		}
	}
	s.Buf = append(httpapi.AppendWarnings(append(s.Buf, ']'), incomplete), '}')
	a.backend.LogUndelivered(s.Flush())
}

package query

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// handler serves the HTTP JSON API.
type handler struct {
	*backend
	ui      *ui
	tails   *tails
	tenancy bool // tenants are kept apart
}

// routes returns the API and the pages under base, which is "" or begins with a slash. What is no route is not found, whatever the method.
func (h *handler) routes(base string) http.Handler {
	mux := http.NewServeMux()
	for _, r := range slices.Concat(h.apiRoutes(), h.pageRoutes(), h.tempoRoutes()) {
		method, path, _ := strings.Cut(r.pattern, " ")
		mux.HandleFunc(method+" "+base+path, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Cache-Control", "no-store") // the next answer may hold more spans
			r.answer(w, req)
		})
	}
	mux.HandleFunc(base+"/api/", http.NotFound)
	mux.HandleFunc(base+"/tempo/", tempoUnknown)
	mux.Handle(base+"/static/", http.StripPrefix(base, http.HandlerFunc(h.ui.static)))
	mux.HandleFunc(base+"/", h.ui.index)
	return compressed(mux)
}

// route is what is served and who answers it: a method and a path below the base.
type route struct {
	pattern string
	answer  http.HandlerFunc
}

func (h *handler) apiRoutes() []route {
	return []route{
		{"GET /api/traces", h.search},
		{"GET /api/traces/{id}", h.trace},
		{"POST /api/archive/{id}", h.archiveTrace},
		{"POST /api/transform", h.transform},
		{"GET /api/services", h.services},
		{"GET /api/services/{service}/operations", h.operationNames},
		{"GET /api/services/{rest...}", h.operationNames},
		{"GET /api/operations", h.operations},
		{"GET /api/dependencies", h.dependencies},
		{"GET /api/metrics/latencies", h.latencies},
		{"GET /api/metrics/calls", h.callRates},
		{"GET /api/metrics/errors", h.errorRates},
		{"GET /api/metrics/minstep", h.leastStep},
		{"GET /api/v3/services", h.servicesV3},
		{"GET /api/v3/operations", h.operationsV3},
		{"GET /api/v3/traces", h.searchV3},
		{"GET /api/v3/traces/{id}", h.traceV3},
		{"GET /api/v3/trace-summaries", h.summariesV3},
	}
}

func (h *handler) services(w http.ResponseWriter, r *http.Request) {
	names, err := h.storedServices(r)
	if err != nil {
		h.failed(w, r, err)
		return
	}
	h.answer(newList(w, r), "[]", len(names), func(dst []byte, i int) []byte { return otlpdata.AppendJSONString(dst, names[i]) })
}

func (h *handler) storedServices(r *http.Request) (names []string, err error) {
	t, err := h.admit(r.Context())
	if err != nil {
		return nil, err
	}
	defer t.done()
	err = h.measure(opGetServices, func() (_ int, err error) {
		names, err = h.store.Services(t, server.Tenant(t))
		return len(names), err
	})
	return names, err
}

// operationNames lists names only; a name occurs once, whatever kinds its spans are of.
func (h *handler) operationNames(w http.ResponseWriter, r *http.Request) {
	service, ok := pathService(r)
	if !ok {
		http.NotFound(w, r)
		return
	}
	ops, err := h.storedOperations(r, service, "")
	if once, bad := url.PathUnescape(service); err == nil && len(ops) == 0 && bad == nil && once != service {
		ops, err = h.storedOperations(r, once, "") // a client escaped it twice
	}
	if err != nil {
		h.failed(w, r, err)
		return
	}
	var names []string
	seen := make(map[string]bool, len(ops))
	for _, op := range ops {
		if !seen[op.Name] {
			seen[op.Name] = true
			names = append(names, op.Name)
		}
	}
	h.answer(newList(w, r), "null", len(names), func(dst []byte, i int) []byte { return otlpdata.AppendJSONString(dst, names[i]) })
}

// pathService returns the service in a path. Clients leave slashes in names as they are.
func pathService(r *http.Request) (string, bool) {
	if s := r.PathValue("service"); s != "" {
		return s, true
	}
	return strings.CutSuffix(r.PathValue("rest"), "/operations")
}

func (h *handler) operations(w http.ResponseWriter, r *http.Request) {
	params := r.URL.Query()
	service := params.Get("service")
	if service == "" {
		writeError(w, http.StatusBadRequest, errNoService.Error())
		return
	}
	ops, err := h.storedOperations(r, service, params.Get("spanKind"))
	if err != nil {
		h.failed(w, r, err)
		return
	}
	h.answer(newList(w, r), "[]", len(ops), func(dst []byte, i int) []byte { return appendOperation(dst, &ops[i]) })
}

func appendOperation(dst []byte, op *tracestore.Operation) []byte {
	dst = otlpdata.AppendJSONString(append(dst, `{"name":`...), op.Name)
	dst = otlpdata.AppendJSONString(append(dst, `,"spanKind":`...), op.Kind)
	return append(dst, '}')
}

func (h *handler) storedOperations(r *http.Request, service, kind string) (ops []tracestore.Operation, err error) {
	t, err := h.admit(r.Context())
	if err != nil {
		return nil, err
	}
	defer t.done()
	err = h.measure(opGetOperations, func() (_ int, err error) {
		ops, err = h.store.Operations(t, server.Tenant(t), service, kind)
		return len(ops), err
	})
	return ops, err
}

// answer writes a list of n short elements, and their number as total.
func (h *handler) answer(l *list, empty string, n int, element func(dst []byte, i int) []byte) {
	defer l.close()
	for i := range n {
		if l.add(func(dst []byte) ([]byte, error) { return element(dst, i), nil }) != nil {
			return // the client is gone
		}
	}
	h.finish(l, empty, tail{Total: n})
}

func (h *handler) finish(l *list, empty string, t tail) { h.delivered(l.finish(empty, t)) }

// delivered notes that an answer did not reach its client.
func (h *handler) delivered(err error) {
	if err != nil {
		h.logger.Debug("answer not delivered", zap.Error(err))
	}
}

// failed answers a request that could not be answered.
func (h *handler) failed(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil { // nobody is listening
		return
	}
	status, text := h.explain(w.Header(), err)
	writeError(w, status, text)
}

// explain returns the status and the text of an error, and logs it when it is not about time or load. A header says when to try again.
func (h *handler) explain(header http.Header, err error) (status int, text string) {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, h.timeoutText()
	case errors.Is(err, errBusy):
		return server.ErrorStatus(header, err), err.Error()
	}
	h.logger.Error("HTTP handler, Internal Server Error", zap.Error(err))
	return http.StatusInternalServerError, err.Error()
}

func (h *handler) timeoutText() string {
	return fmt.Sprintf("the store did not finish within query_timeout (%s); ask for less", h.limits.timeout)
}

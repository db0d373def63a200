// Package tempo serves the HTTP API of Grafana Tempo that Grafana's data source uses
// (grafana.com/docs/tempo/latest/api_docs): traces by id, searches, and the names and values of
// tags. Streaming is its gRPC form. The routes are below /tempo because /api/traces/{id} is
// different in Jaeger's HTTP API. Times are seconds since the Unix epoch. An error is one line.
package tempo

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
)

// API is the handlers.
type API struct {
	backend *core.Backend
	version httpapi.Version
}

// New returns the API over a backend. version describes the running program.
func New(b *core.Backend, version httpapi.Version) *API { return &API{backend: b, version: version} }

// Routes returns the routes of the API. NotFound handles all other paths below /tempo/.
func (a *API) Routes() []httpapi.Route {
	return []httpapi.Route{
		{Pattern: "GET /tempo/api/echo", Handler: echo},
		{Pattern: "GET /tempo/api/status/buildinfo", Handler: a.buildInfo},
		{Pattern: "GET /tempo/api/traces/{id}", Handler: a.trace},
		{Pattern: "GET /tempo/api/v2/traces/{id}", Handler: a.traceV2},
		{Pattern: "GET /tempo/api/search", Handler: a.search},
		{Pattern: "GET /tempo/api/metrics/query_range", Handler: a.metricsRange},
		{Pattern: "GET /tempo/api/metrics/query", Handler: a.metricsInstant},
		{Pattern: "GET /tempo/api/search/tags", Handler: a.tagNames},
		{Pattern: "GET /tempo/api/v2/search/tags", Handler: a.tagNamesV2},
		{Pattern: "GET /tempo/api/search/tag/{rest...}", Handler: a.tagValues},
		{Pattern: "GET /tempo/api/v2/search/tag/{rest...}", Handler: a.tagValuesV2},
	}
}

// NotFound responds to requests for parts of the API that are not served.
func NotFound(w http.ResponseWriter, r *http.Request) {
	const served = "served are GET of api/echo, api/search, api/metrics/query_range, api/metrics/query, " +
		"and, also below api/v2, api/traces/ID, api/search/tags and " +
		"api/search/tag/NAME/values; overrides are not"
	http.Error(w, fmt.Sprintf("%s %s is not served here: %s", r.Method, clip(r.URL.Path), served), http.StatusNotFound)
}

// echo serves GET /tempo/api/echo, with which the data source tests its connection.
func echo(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("echo"))
}

// buildInfo serves GET /tempo/api/status/buildinfo.
func (a *API) buildInfo(w http.ResponseWriter, _ *http.Request) {
	v := a.version
	body, err := json.Marshal(struct {
		Version  string `json:"version"`
		Revision string `json:"revision"`
		Date     string `json:"buildDate"`
	}{v.Version, v.Commit, v.Date})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// fail responds to a request whose query failed, unless the client disconnected.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return
	}
	status, text := a.backend.HTTPError(w.Header(), err)
	http.Error(w, text, status)
}

// write responds with the JSON that body appends.
func (a *API) write(w http.ResponseWriter, r *http.Request, body func(dst []byte) []byte) {
	s := httpapi.NewStream(w, r)
	defer s.Close()
	s.Buf = body(s.Buf)
	a.backend.LogUndelivered(s.Flush())
}

// windowParams parses start and end. An absent or zero bound is a zero time.
func windowParams(v url.Values) (w core.Window, err error) {
	if w.From, err = secondsParam(v, "start"); err != nil {
		return w, err
	}
	if w.To, err = secondsParam(v, "end"); err != nil {
		return w, err
	}
	if !w.From.IsZero() && !w.To.IsZero() {
		err = checkWindow(w)
	}
	return w, err
}

func checkWindow(w core.Window) error {
	if w.From.Before(w.To) {
		return nil
	}
	return fmt.Errorf("http parameter start must be before end. received start=%d end=%d", w.From.Unix(), w.To.Unix())
}

func secondsParam(v url.Values, name string) (time.Time, error) {
	p := v.Get(name)
	if p == "" {
		return time.Time{}, nil
	}
	// A number above 32 bits is most likely in milliseconds or nanoseconds by mistake.
	s, err := strconv.ParseUint(p, 10, 32)
	switch {
	case err != nil:
		return time.Time{}, invalid(name, fmt.Errorf("%q is not a number of seconds since the Unix epoch", clip(p)))
	case s == 0:
		return time.Time{}, nil
	}
	return time.Unix(int64(s), 0), nil
}

// countParam parses a number of at least minimum. Numbers above maximum are reduced to it.
func countParam(v url.Values, name string, absent, minimum, maximum int) (int, error) {
	p := v.Get(name)
	if p == "" {
		return min(absent, maximum), nil
	}
	n, err := strconv.ParseUint(p, 10, 64)
	if err != nil || n < uint64(minimum) {
		return 0, invalid(name, fmt.Errorf("%q is not a number of at least %d", clip(p), minimum))
	}
	return int(min(n, uint64(maximum), math.MaxInt)), nil
}

func invalid(name string, err error) error { return fmt.Errorf("invalid %s: %w", name, err) }

// clip shortens a client's text for use in an error.
func clip(s string) string {
	const maxLength = 64
	if len(s) <= maxLength {
		return s
	}
	return strings.ToValidUTF8(s[:maxLength], "") + "..."
}

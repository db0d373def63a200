package query

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The routes below /tempo answer what Grafana's data source for Tempo asks over HTTP (grafana.com/docs/tempo/latest/api_docs): a trace, a
// search, and the names and values of tags. They have a path of their own because /api/traces/{id} of the two APIs is not the same.
// Times are seconds since the Unix epoch. An error is a line of text.

func (h *handler) tempoRoutes() []route {
	return []route{
		{"GET /tempo/api/echo", tempoEcho},
		{"GET /tempo/api/status/buildinfo", h.tempoBuild},
		{"GET /tempo/api/traces/{id}", h.tempoTrace},
		{"GET /tempo/api/v2/traces/{id}", h.tempoTraceV2},
		{"GET /tempo/api/search", h.tempoSearch},
		{"GET /tempo/api/search/tags", h.tempoTagNames},
		{"GET /tempo/api/v2/search/tags", h.tempoTagScopes},
		{"GET /tempo/api/search/tag/{rest...}", h.tempoTagTexts},
		{"GET /tempo/api/v2/search/tag/{rest...}", h.tempoTagValues},
	}
}

// tempoUnknown answers what is not served of that API.
func tempoUnknown(w http.ResponseWriter, r *http.Request) {
	const served = "served are GET of api/echo, api/search, and, also below api/v2, api/traces/ID, api/search/tags and " +
		"api/search/tag/NAME/values; metrics queries, overrides and streaming are not"
	http.Error(w, fmt.Sprintf("%s %s is not served here: %s", r.Method, clip(r.URL.Path), served), http.StatusNotFound)
}

// tempoEcho is what the data source's test asks.
func tempoEcho(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("echo")) // a client that is gone needs no answer
}

// tempoBuild tells which program this is, by the names that clients read.
func (h *handler) tempoBuild(w http.ResponseWriter, _ *http.Request) {
	v := h.ui.version
	body, err := json.Marshal(struct {
		Version  string `json:"version"`
		Revision string `json:"revision"`
		Date     string `json:"buildDate"`
	}{v.Version, v.Commit, v.Date})
	if err != nil { // of strings
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// failedTempo answers a request that could not be answered.
func (h *handler) failedTempo(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil { // nobody is listening
		return
	}
	status, text := h.explain(w.Header(), err)
	http.Error(w, text, status)
}

// writeTempo writes an answer that was gathered as a whole.
func (h *handler) writeTempo(w http.ResponseWriter, r *http.Request, body func(dst []byte) []byte) {
	s := newStream(w, r)
	defer s.close()
	s.buf = body(s.buf)
	h.delivered(s.flush())
}

// tempoWindow reads start and end. A bound that is not given, or 0, is a zero time.
func tempoWindow(v url.Values) (from, to time.Time, err error) {
	if from, err = secondsParam(v, "start"); err != nil {
		return from, to, err
	}
	if to, err = secondsParam(v, "end"); err != nil {
		return from, to, err
	}
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		err = errInterval(from, to)
	}
	return from, to, err
}

func errInterval(from, to time.Time) error {
	return fmt.Errorf("http parameter start must be before end. received start=%d end=%d", from.Unix(), to.Unix())
}

func secondsParam(v url.Values, name string) (time.Time, error) {
	p := v.Get(name)
	if p == "" {
		return time.Time{}, nil
	}
	// More digits are milliseconds or nanoseconds, and most likely a mistake of the client.
	s, err := strconv.ParseUint(p, 10, 32)
	switch {
	case err != nil:
		return time.Time{}, invalid(name, fmt.Errorf("%q is not a number of seconds since the Unix epoch", clip(p)))
	case s == 0:
		return time.Time{}, nil
	}
	return time.Unix(int64(s), 0), nil
}

// tempoCount reads a number of things that is at least least. What is more than most is most.
func tempoCount(v url.Values, name string, absent, least, most int) (int, error) {
	p := v.Get(name)
	if p == "" {
		return min(absent, most), nil
	}
	n, err := strconv.ParseUint(p, 10, 64)
	if err != nil || n < uint64(least) {
		return 0, invalid(name, fmt.Errorf("%q is not a number from %d on", clip(p), least))
	}
	return int(min(n, uint64(most), math.MaxInt)), nil
}

func invalid(name string, err error) error { return fmt.Errorf("invalid %s: %w", name, err) }

// clip shortens what a client sent for the text of an error.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// Package storeadmin is what operators may do to a store over HTTP.
//
//	POST /delete  {"tenant": "", "traces": ["4bf92f3577b34da6a3ce929d0e0e4736"]}
//	              {"tenant": "", "service": "cart", "from": "2026-11-21T17:00:00Z", "to": "2026-11-21T18:00:00Z"}
//	              {"tenant": "", "to": "2026-11-21T18:00:00Z"}
//	200           {"spans": 19}
//	4xx, 5xx      {"error": "..."}: 400 bad input, 403 not allowed by the configuration or sent by a web page, 413 too long, 415 no JSON,
//	              429 and 503 come again
package storeadmin

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// maxBody bounds a request: room for tracestore.MaxDeletedTraces ids, with spaces.
const maxBody = 1 << 20

// Handler returns the routes for a store.
func Handler(store tracestore.Deleter) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /delete", func(w http.ResponseWriter, r *http.Request) { deleteSpans(w, r, store) })
	return mux
}

// deletion is the body of a request. Of a service or a list of traces that is there but empty, something has gone wrong with the client.
type deletion struct {
	Tenant  string    `json:"tenant"`
	Traces  []string  `json:"traces"`
	Service *string   `json:"service"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
}

func deleteSpans(w http.ResponseWriter, r *http.Request, store tracestore.Deleter) {
	// A page in the operator's browser can send anything to localhost without asking, but not with this content type. One whose name was
	// made to mean localhost could; browsers say of every POST where it comes from.
	if r.Header.Get("Origin") != "" {
		refuse(w, http.StatusForbidden, errors.New("web pages may not delete"))
		return
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, errors.New("the content type must be application/json"))
		return
	}
	tenant, d, err := read(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		refuse(w, http.StatusRequestEntityTooLarge, err)
		return
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	deleted, err := store.Delete(r.Context(), tenant, d)
	switch {
	case errors.Is(err, tracestore.ErrNotAllowed):
		refuse(w, http.StatusForbidden, err)
	case err != nil:
		code, after := pipeline.HTTPStatus(err)
		if after > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(max(1, after.Seconds()))))
		}
		refuse(w, code, err)
	default:
		answer(w, http.StatusOK, struct {
			Spans int `json:"spans"`
		}{deleted.Spans})
	}
}

// read reads a body. Its errors are for the client.
func read(body io.Reader) (tenant string, d tracestore.Deletion, err error) {
	var in deletion
	dec := json.NewDecoder(body)
	dec.DisallowUnknownFields() // a misspelled `from` must not delete everything
	if err := dec.Decode(&in); err != nil {
		return "", d, fmt.Errorf("reading the deletion: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return "", d, errors.New("something follows the deletion")
	}
	d = tracestore.Deletion{From: in.From, To: in.To}
	switch {
	case in.Traces != nil && len(in.Traces) == 0:
		return "", d, errors.New("the list of traces is empty; leave it out if no traces are meant")
	case in.Service != nil && *in.Service == "":
		return "", d, errors.New("the service is empty; leave it out if all services are meant")
	case in.Service != nil:
		d.Service = *in.Service
	}
	for _, text := range in.Traces {
		id, err := parseTraceID(text)
		if err != nil {
			return "", d, err
		}
		d.Traces = append(d.Traces, id)
	}
	return in.Tenant, d, d.Check()
}

// parseTraceID reads up to 32 hexadecimal digits; zeros in front may be missing, as interfaces often write ids of 64 bits.
func parseTraceID(s string) (id otlpdata.TraceID, err error) {
	const digits = 2 * len(id)
	if s == "" || len(s) > digits {
		return id, fmt.Errorf("%q is not a trace id", s)
	}
	if _, err := hex.Decode(id[:], []byte(strings.Repeat("0", digits-len(s))+s)); err != nil {
		return id, fmt.Errorf("%q is not a trace id", s)
	}
	return id, nil
}

func refuse(w http.ResponseWriter, code int, err error) {
	answer(w, code, struct {
		Error string `json:"error"`
	}{err.Error()})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(body) //nolint:errcheck // the client is gone
}

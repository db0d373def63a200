// Package storeadmin serves the HTTP API for operators to delete spans from a store.
//
//	POST /delete
//	{"tenant": "", "traces": ["4bf92f3577b34da6a3ce929d0e0e4736"]}
//	{"tenant": "", "service": "cart", "from": "2026-11-21T17:00:00Z"}
//	{"tenant": "", "from": "2026-11-21T17:00:00Z", "to": "2026-11-21T18:00:00Z"}
//
// With "dry_run": true, spans are counted and not deleted.
//
// Responses:
//
//	200           {"spans": 19}
//	4xx, 5xx      {"error": "..."}
//
// Status codes are 400 (invalid request), 403 (not allowed by the configuration, or sent by a web
// page), 413 (body too large), 415 (content type is not JSON), and 429 and 503 (retry later).
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

// maxBody is the maximum size of a request body in bytes. It is large enough for
// tracestore.MaxDeletedTraces ids with spaces.
const maxBody = 1 << 20

// Handler returns the handler for a store.
func Handler(store tracestore.Deleter) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /delete", func(w http.ResponseWriter, r *http.Request) { deleteSpans(w, r, store) })
	return mux
}

// deletion is the body of a request. An empty service or an empty list of traces is rejected as a
// client error.
type deletion struct {
	Tenant  string    `json:"tenant"`
	Traces  []string  `json:"traces"`
	Service *string   `json:"service"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	DryRun  bool      `json:"dry_run"`
}

func deleteSpans(w http.ResponseWriter, r *http.Request, store tracestore.Deleter) {
	// A web page in an operator's browser can send requests to localhost, but not with this content
	// type unless DNS rebinding makes the page's own host name resolve to localhost. Browsers add
	// an Origin header to every POST.
	if r.Header.Get("Origin") != "" {
		refuse(w, http.StatusForbidden, errors.New("requests from web pages are not allowed: remove the Origin header"))
		return
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, errors.New("unsupported content type: use application/json"))
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

// read decodes a request body. Its errors are for the client.
func read(body io.Reader) (tenant string, d tracestore.Deletion, err error) {
	var in deletion
	dec := json.NewDecoder(body)
	dec.DisallowUnknownFields() // a misspelled "from" must not delete everything
	if err := dec.Decode(&in); err != nil {
		return "", d, fmt.Errorf("invalid request body: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return "", d, errors.New("invalid request body: trailing data after the JSON object")
	}
	d = tracestore.Deletion{From: in.From, To: in.To, DryRun: in.DryRun}
	switch {
	case in.Traces != nil && len(in.Traces) == 0:
		return "", d, errors.New("empty list of traces: specify trace ids or omit \"traces\"")
	case in.Service != nil && *in.Service == "":
		return "", d, errors.New("empty service: specify a name or omit \"service\"")
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

// parseTraceID parses up to 32 hexadecimal digits. Leading zeros may be omitted, as user interfaces
// often do for 64-bit ids.
func parseTraceID(s string) (id otlpdata.TraceID, err error) {
	const digits = 2 * len(id)
	if s == "" || len(s) > digits {
		return id, fmt.Errorf("invalid trace id %q: use up to 32 hexadecimal digits", s)
	}
	if _, err := hex.Decode(id[:], []byte(strings.Repeat("0", digits-len(s))+s)); err != nil {
		return id, fmt.Errorf("invalid trace id %q: use up to 32 hexadecimal digits", s)
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
	json.NewEncoder(w).Encode(body) //nolint:errcheck // the client has disconnected
}

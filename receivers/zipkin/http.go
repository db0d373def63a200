package zipkin

import (
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// Parts of URL paths. Proxies may add prefixes, and old clients a trailing slash.
const (
	v1Path     = "api/v1/spans"
	v2Path     = "api/v2/spans"
	healthPath = "/health"
)

// Reasons of refused requests, in addition to the reasons in package server.
const (
	reasonPath   = "path"
	reasonMethod = "method"
)

// ServeHTTP handles all requests of the listener.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	f := formatOf(req)
	switch {
	case f == nil && req.URL.Path == healthPath && (req.Method == http.MethodGet || req.Method == http.MethodHead):
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"status":"UP"}`) //nolint:errcheck // the client has disconnected
	case f == nil:
		r.listener.CountRefused(reasonPath)
		http.NotFound(w, req)
	case req.Method != http.MethodPost:
		r.listener.CountRefused(reasonMethod)
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
	default:
		r.spans(w, req, f)
	}
}

func (r *receiver) spans(w http.ResponseWriter, req *http.Request, f *format) {
	body, err := server.ReadBody(req)
	if err != nil {
		fail(w, err) // counted by the server
		return
	}
	b, err := r.translate(req.Context(), f, body, req.Header.Get("X-B3-Flags") == "1")
	if err != nil {
		r.listener.CountRefused(server.ReasonOf(err))
		fail(w, err)
		return
	}
	switch err := r.consume(req.Context(), b); {
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
	case isBadRequest(err):
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `"Bad Request"`) //nolint:errcheck // the client has disconnected
	default:
		fail(w, err)
	}
}

// formatOf returns the format for the path and media type, or nil for other paths. The default
// media type is JSON. It sets the pattern of the request, after which the listener names its span.
func formatOf(r *http.Request) *format {
	// For a malformed value, the result is "" or the type without parameters.
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case strings.Contains(r.URL.Path, v1Path):
		r.Pattern = v1Path
		if mediaType == "application/x-thrift" {
			return &v1Thrift
		}
		return &v1JSON
	case strings.Contains(r.URL.Path, v2Path):
		r.Pattern = v2Path
		if mediaType == "application/x-protobuf" {
			return &v2Proto
		}
		return &v2JSON
	}
	return nil
}

// isBadRequest reports whether the status is 400, for which clients expect a fixed body.
func isBadRequest(err error) bool {
	code, _ := pipeline.HTTPStatus(err)
	return code == http.StatusBadRequest
}

// fail responds with the status and text of the error and sets Retry-After if the client should
// retry.
func fail(w http.ResponseWriter, err error) {
	http.Error(w, pipeline.ClientText(err), server.ErrorStatus(w.Header(), err))
}

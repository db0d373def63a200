package native

import (
	"errors"
	"fmt"
	"html"
	"mime"
	"net/http"

	"github.com/tracing-backend/tracing/pipeline/server"
)

const tracesPath = "/api/traces"

// Reasons of refused requests that only HTTP has.
const (
	reasonPath      = "path"
	reasonMethod    = "method"
	reasonMediaType = "media_type"
)

// httpServer takes POSTs to the traces path, and tells clients what to sample.
type httpServer struct {
	*server.HTTP
	receiver *receiver
	sampling map[string]http.HandlerFunc // by path
}

func newHTTPServer(r *receiver, cfg server.HTTPConfig) (*httpServer, error) {
	s := &httpServer{receiver: r, sampling: samplingRoutes(r.sampling)}
	var err error
	if s.HTTP, err = server.NewHTTP(r.set, "protocols.http", cfg, s); err != nil {
		return nil, err
	}
	s.OnDenied(server.DenyWithStatus)
	return s, nil
}

// ServeHTTP answers everything on the port.
func (s *httpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if route, ok := s.sampling[r.URL.Path]; ok {
		route(w, r)
		return
	}
	switch {
	case r.URL.Path != tracesPath:
		s.CountRefused(reasonPath)
		http.NotFound(w, r)
	case r.Method != http.MethodPost:
		s.CountRefused(reasonMethod)
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
	default:
		s.traces(w, r)
	}
}

// traces reads the body before it looks at the media type, as clients know it. Query parameters mean nothing.
func (s *httpServer) traces(w http.ResponseWriter, r *http.Request) {
	body, err := server.ReadBody(r)
	if err != nil {
		failRead(w, err) // counted by the server
		return
	}
	if msg := checkMediaType(r.Header.Get("Content-Type")); msg != "" {
		s.CountRefused(reasonMediaType)
		http.Error(w, msg, http.StatusBadRequest)
		return
	}
	b, err := s.receiver.translate(r.Context(), body, thriftBatch)
	if err != nil {
		s.CountRefused(server.ReasonOf(err))
		fail(w, unprocessable, err)
		return
	}
	if err := s.receiver.consume(r.Context(), b); err != nil {
		fail(w, "Cannot submit batch: %v", err)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// checkMediaType returns what is wrong with a Content-Type, "" if it is Thrift in the binary protocol. Its value is quoted back, so it is
// escaped for browsers that take any text for a page.
func checkMediaType(contentType string) (msg string) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return fmt.Sprintf("Cannot parse content type: %v", err)
	}
	switch mediaType {
	case "application/vnd.apache.thrift.binary", "application/vnd.foundation.thrift.binary", "application/x-thrift":
		return ""
	}
	return "Unsupported content type: " + html.EscapeString(mediaType)
}

// unprocessable is the answer to a body that is no batch of spans.
const unprocessable = "Unable to process request body: %v"

// failRead answers a request whose body could not be read.
func failRead(w http.ResponseWriter, err error) {
	var refusal *server.Refusal
	errors.As(err, &refusal)
	switch {
	case refusal != nil && refusal.Reason == server.ReasonEncoding:
		fail(w, "%v", err)
	case refusal != nil && refusal.Reason == server.ReasonIncomplete:
		http.Error(w, fmt.Sprintf(unprocessable, err), http.StatusInternalServerError)
	default:
		fail(w, unprocessable, err)
	}
}

// fail answers with the status of the error's class, and tells the client when to try again.
func fail(w http.ResponseWriter, format string, err error) {
	http.Error(w, fmt.Sprintf(format, err), server.ErrorStatus(w.Header(), err))
}

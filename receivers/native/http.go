package native

import (
	"errors"
	"fmt"
	"html"
	"mime"
	"net/http"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

const tracesPath = "/api/traces"

// Reasons of refused HTTP requests, in addition to the reasons in package server.
const (
	reasonPath      = "path"
	reasonMethod    = "method"
	reasonMediaType = "media_type"
)

// httpServer receives spans by POST on the traces path and serves sampling strategies.
type httpServer struct {
	listener *server.HTTP
	receiver *receiver
	sampling map[string]http.HandlerFunc // by path
}

func newHTTPServer(r *receiver, cfg server.HTTPConfig) (*httpServer, error) {
	s := &httpServer{receiver: r, sampling: samplingRoutes(r.sampling)}
	var err error
	if s.listener, err = server.NewHTTP(r.set, "protocols.http", cfg, s); err != nil {
		return nil, err
	}
	s.listener.OnDenied(server.DenyWithStatus)
	s.listener.SetUnsafe(func(*http.Request) bool { return true }) // requests for strategies are remembered
	return s, nil
}

// ServeHTTP handles all requests of the listener.
func (s *httpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if route, ok := s.sampling[r.URL.Path]; ok {
		r.Pattern = r.URL.Path // the listener names the span of the request after it
		route(w, r)
		return
	}
	switch {
	case r.URL.Path != tracesPath:
		s.listener.CountRefused(reasonPath)
		http.NotFound(w, r)
	case r.Method != http.MethodPost:
		s.listener.CountRefused(reasonMethod)
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
	default:
		r.Pattern = tracesPath
		s.traces(w, r)
	}
}

// traces receives spans. It reads the body before it checks the media type, because clients depend
// on the order of errors. It ignores query parameters.
func (s *httpServer) traces(w http.ResponseWriter, r *http.Request) {
	body, err := server.ReadBody(r)
	if err != nil {
		failRead(w, err) // counted by the server
		return
	}
	if msg := checkMediaType(r.Header.Get("Content-Type")); msg != "" {
		s.listener.CountRefused(reasonMediaType)
		http.Error(w, msg, http.StatusBadRequest)
		return
	}
	b, err := s.receiver.translate(r.Context(), body, thriftBatch)
	if err != nil {
		s.listener.CountRefused(server.ReasonOf(err))
		fail(w, unprocessable, err)
		return
	}
	if err := s.receiver.consume(r.Context(), b); err != nil {
		fail(w, "Cannot submit batch: %v", err)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// checkMediaType returns an error message, or "" if the Content-Type is Thrift in the binary
// protocol. The message quotes the value HTML-escaped, because some browsers interpret any text as
// HTML.
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

// unprocessable is the format of the response to an undecodable body. Clients expect this text.
const unprocessable = "Unable to process request body: %v"

// failRead responds to a request whose body could not be read.
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

// fail responds with the status of the error and sets Retry-After if the client should retry.
func fail(w http.ResponseWriter, format string, err error) {
	http.Error(w, fmt.Sprintf(format, pipeline.ClientText(err)), server.ErrorStatus(w.Header(), err))
}

package otlp

import (
	"fmt"
	"mime"
	"net/http"

	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// Reasons of refused HTTP requests, in addition to the reasons in package server.
const (
	reasonPath      = "path"
	reasonMethod    = "method"
	reasonMediaType = "media_type"
)

// httpServer receives signals by POST on their paths.
type httpServer struct {
	listener *server.HTTP
	receiver *receiver
	path     string // of traces
	signals  map[string]*signal
}

func newHTTPServer(r *receiver, cfg httpConfig) (*httpServer, error) {
	s := &httpServer{receiver: r, path: cfg.TracesPath,
		signals: map[string]*signal{metricsPath: metricsSignal, cfg.LogsPath: logsSignal, cfg.TracesPath: tracesSignal}}
	var err error
	if s.listener, err = server.NewHTTP(r.set, "protocols.http", cfg.HTTPConfig, s); err != nil {
		return nil, err
	}
	s.listener.OnDenied(s.denied)
	return s, nil
}

// denied responds to a request without valid credentials or tenant, in the encoding of the request
// if it is supported.
func (s *httpServer) denied(w http.ResponseWriter, r *http.Request, d *server.Denied) {
	if enc := encodingOf(r); enc != nil {
		fail(w, enc, d)
		return
	}
	code, _ := pipeline.HTTPStatus(d)
	write(w, "text/plain", code, []byte(d.Msg))
}

// ServeHTTP handles all requests of the listener.
func (s *httpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	signal := s.signals[r.URL.Path]
	switch {
	case signal != nil:
		r.Pattern = r.URL.Path // the listener names the span of the request after it
		s.receive(w, r, signal)
	case r.URL.Path == "/v1development/profiles":
		s.refuse(w, reasonSignal, http.StatusNotFound, "404 page not found: profiles are not accepted; traces are, at "+s.path+"\n")
	default:
		s.refuse(w, reasonPath, http.StatusNotFound, "404 page not found\n")
	}
}

// encodingOfPost returns the encoding of a POST request. For other requests, it sends a response
// and returns nil.
func (s *httpServer) encodingOfPost(w http.ResponseWriter, r *http.Request) *encoding {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		s.refuse(w, reasonMethod, http.StatusMethodNotAllowed, "405 method not allowed, supported: [POST]")
		return nil
	}
	enc := encodingOf(r)
	if enc == nil {
		s.refuse(w, reasonMediaType, http.StatusUnsupportedMediaType,
			"415 unsupported media type, supported: [application/json, application/x-protobuf]")
	}
	return enc
}

func (s *httpServer) receive(w http.ResponseWriter, r *http.Request, signal *signal) {
	enc := s.encodingOfPost(w, r)
	if enc == nil {
		return
	}
	if !s.receiver.takes(signal) {
		s.other(w, r, enc, signal)
		return
	}
	b, err := s.read(r, enc, signal)
	if err != nil {
		fail(w, enc, err)
		return
	}
	rejected, message, err := s.receiver.consume(r.Context(), b, s.listener.CountRefused)
	if err != nil {
		fail(w, enc, err)
		return
	}
	body, err := signal.response(enc, rejected, message)
	if err != nil {
		fail(w, enc, fmt.Errorf("encoding response: %w", err))
		return
	}
	write(w, enc.mediaType, http.StatusOK, body)
}

// read reads and decodes the request. It counts a refusal.
func (s *httpServer) read(r *http.Request, enc *encoding, signal *signal) (*otlpdata.Batch, error) {
	body, err := server.ReadBody(r)
	if err != nil {
		return nil, err // counted by the server
	}
	memory, err := s.receiver.reserve("bytes of memory to decode the JSON", enc.memory(body))
	if err != nil {
		s.listener.CountRefused(server.ReasonOf(err))
		return nil, err
	}
	defer memory.Release()
	b, err := enc.decode(body, s.receiver.meta(r.Context(), signal.kind, "http"), s.receiver.limits)
	if err != nil {
		s.listener.CountRefused(server.ReasonOf(err))
		return nil, pipeline.Permanent(err)
	}
	return b, nil
}

// refuse responds with plain text to a request that contains none of the signals, and counts it.
func (s *httpServer) refuse(w http.ResponseWriter, reason string, code int, text string) {
	s.listener.CountRefused(reason)
	write(w, "text/plain", code, []byte(text))
}

// fail responds with a google.rpc.Status in the given encoding.
func fail(w http.ResponseWriter, enc *encoding, err error) {
	code := server.ErrorStatus(w.Header(), err)
	st := pipeline.GRPCStatus(err).Proto()
	if code == http.StatusRequestEntityTooLarge {
		// Clients expect this code for a too large body. They expect the HTTP status 400 with it,
		// but 413 is more specific.
		st.Code = int32(codes.InvalidArgument)
	}
	body, merr := enc.status(st)
	if merr != nil {
		write(w, jsonEncoding.mediaType, http.StatusInternalServerError, []byte(`{"code": 13, "message": "failed to marshal error message"}`))
		return
	}
	write(w, enc.mediaType, code, body)
}

func write(w http.ResponseWriter, contentType string, code int, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	w.Write(body) //nolint:errcheck // the client has disconnected
}

// encodingOf returns the encoding for the Content-Type of the request, or nil if it is not
// supported.
func encodingOf(r *http.Request) *encoding {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil && mediaType == "" {
		return nil
	}
	switch mediaType {
	case protoEncoding.mediaType:
		return &protoEncoding
	case jsonEncoding.mediaType:
		return &jsonEncoding
	}
	return nil
}

package otlp

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"

	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// Reasons of refused requests that only HTTP has.
const (
	reasonPath      = "path"
	reasonMethod    = "method"
	reasonMediaType = "media_type"
)

// httpServer takes POSTs to the traces path.
type httpServer struct {
	*server.HTTP
	receiver *receiver
	path     string
}

func newHTTPServer(r *receiver, cfg httpConfig) (*httpServer, error) {
	s := &httpServer{receiver: r, path: cfg.TracesPath}
	var err error
	if s.HTTP, err = server.NewHTTP(r.set, "protocols.http", cfg.HTTPConfig, s); err != nil {
		return nil, err
	}
	s.OnDenied(s.denied)
	return s, nil
}

// denied answers a client that is not let in: in the encoding of its request, where that is one of the protocol's.
func (s *httpServer) denied(w http.ResponseWriter, r *http.Request, d *server.Denied) {
	if enc := encodingOf(r); enc != nil {
		fail(w, enc, d)
		return
	}
	code, _ := pipeline.HTTPStatus(d)
	write(w, "text/plain", code, []byte(d.Msg))
}

// ServeHTTP answers everything on the port.
func (s *httpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case s.path:
		s.traces(w, r)
	case "/v1/metrics", "/v1/logs", "/v1development/profiles":
		s.refuse(w, reasonSignal, http.StatusNotFound, "404 page not found: only traces are accepted here, at "+s.path+"\n")
	default:
		s.refuse(w, reasonPath, http.StatusNotFound, "404 page not found\n")
	}
}

func (s *httpServer) traces(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		s.refuse(w, reasonMethod, http.StatusMethodNotAllowed, "405 method not allowed, supported: [POST]")
		return
	}
	enc := encodingOf(r)
	if enc == nil {
		s.refuse(w, reasonMediaType, http.StatusUnsupportedMediaType,
			"415 unsupported media type, supported: [application/json, application/x-protobuf]")
		return
	}
	b, err := s.read(r, enc)
	if err != nil {
		fail(w, enc, err)
		return
	}
	resp, err := s.receiver.consume(r.Context(), b, s.CountRefused)
	if err != nil {
		fail(w, enc, err)
		return
	}
	body, err := enc.response(resp)
	if err != nil {
		fail(w, enc, fmt.Errorf("encoding the answer: %w", err))
		return
	}
	write(w, enc.mediaType, http.StatusOK, body)
}

// read makes a batch of the request, or counts why there is none.
func (s *httpServer) read(r *http.Request, enc *encoding) (*otlpdata.Batch, error) {
	body, err := server.ReadBody(r)
	if err != nil {
		return nil, err // counted by the server
	}
	objects, err := s.receiver.reserve("bytes of memory to decode the JSON", enc.objects(body))
	if err != nil {
		s.CountRefused(server.ReasonOf(err))
		return nil, err
	}
	defer objects.Release()
	b, err := enc.decode(body, s.receiver.meta(r.Context(), "http"), s.receiver.lim)
	if err != nil {
		s.CountRefused(server.ReasonOf(err))
		return nil, pipeline.Permanent(err)
	}
	return b, nil
}

// refuse answers what is no request for spans.
func (s *httpServer) refuse(w http.ResponseWriter, reason string, code int, text string) {
	s.CountRefused(reason)
	write(w, "text/plain", code, []byte(text))
}

// fail answers with a google.rpc.Status in the request's encoding.
func fail(w http.ResponseWriter, enc *encoding, err error) {
	code := server.ErrorStatus(w.Header(), err)
	st := pipeline.GRPCStatus(err).Proto()
	if code == http.StatusRequestEntityTooLarge {
		// Clients know the refusal of a large body as this code, with status 400; 413 says the same more clearly.
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
	w.Write(body) //nolint:errcheck // the client is gone, nothing is left to tell it
}

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

// jsonObjects is an upper estimate of the memory of the objects that a JSON request is decoded into, in bytes. A brace may stand for a span
// without fields, the largest of all objects for their text, and so may a null in a list. A comma may part two strings of a list. Text is
// held once in the objects and once encoded.
func jsonObjects(body []byte) int64 {
	const perObject, perElement, perByte = 256, 96, 2
	objects := bytes.Count(body, []byte{'{'}) + bytes.Count(body, []byte("null"))
	elements := bytes.Count(body, []byte{','})
	return max(int64(objects)*perObject, int64(elements)*perElement) + int64(len(body))*perByte
}

package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/ClickHouse/ch-go/proto"
	chgo "github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// httpHandler is ClickHouse's HTTP protocol. It answers when a statement has ended: no progress,
// and no exception within a result.
type httpHandler struct {
	runner *runner
}

// notSettings are the parameters of a request that are not settings of the engine.
var notSettings = map[string]bool{
	"query": true, "database": true, "default_format": true, "compress": true, "decompress": true,
	"client_protocol_version": true, "query_id": true, "quota_key": true, "user": true, "password": true,
	"wait_end_of_query": true, "buffer_size": true, "stacktrace": true,
}

func (h *httpHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/ping":
		io.WriteString(w, "Ok.\n") //nolint:errcheck // the client may have left
	case r.URL.Path == "/_test/faults":
		h.runner.faults.ServeHTTP(w, r)
	case r.URL.Path != "/":
		http.NotFound(w, r)
	default:
		h.serveStatement(w, r)
	}
}

func (h *httpHandler) serveStatement(w http.ResponseWriter, r *http.Request) {
	params := r.URL.Query()
	id := cmp.Or(params.Get("query_id"), rand.Text())
	w.Header().Set("X-ClickHouse-Query-Id", id)
	w.Header().Set("X-ClickHouse-Server-Display-Name", "chserver")
	w.Header().Set("X-ClickHouse-Timezone", "Etc/UTC")
	out, format, err := h.execute(r, params)
	if err == nil {
		err = h.answer(w, params, out, format)
	}
	if errors.Is(err, errCut) {
		panic(http.ErrAbortHandler) // closes the connection
	}
	if err != nil {
		writeError(w, err)
	}
}

// execute runs the statement of a request and returns its output.
func (h *httpHandler) execute(r *http.Request, params url.Values) (*result, string, error) {
	if unsupported := cmp.Or(r.Header.Get("Content-Encoding"), params.Get("session_id")); unsupported != "" {
		return nil, "", notSupported(unsupported)
	}
	settings, bound := map[string]string{}, map[string]string{}
	for name, values := range params {
		if p, ok := strings.CutPrefix(name, "param_"); ok {
			bound[p] = values[0]
		} else if !notSettings[name] {
			settings[name] = values[0]
		}
	}
	if r.Method == http.MethodGet && settings["readonly"] == "" {
		settings["readonly"] = "2"
	}
	database := cmp.Or(params.Get("database"), r.Header.Get("X-ClickHouse-Database"))
	s, err := h.runner.open(database, settings)
	if err != nil {
		return nil, "", err
	}
	defer s.close()

	body := io.Reader(r.Body)
	if params.Get("decompress") == "1" {
		body = &frameReader{r: compress.NewReader(r.Body)}
	}
	statement := params.Get("query")
	if head, format := insertHead(statement); head != "" {
		out, err := h.runner.run(context.Background(), head, func(head string) (*result, error) {
			return s.insert(head, format, pieces(body))
		})
		if err != nil && !errors.Is(err, errCut) {
			io.Copy(io.Discard, body) //nolint:errcheck // the client reads the response after its data
		}
		return out, "Null", err
	}
	rest, err := io.ReadAll(body)
	if err != nil {
		return nil, "", err
	}
	statement += string(rest)
	// As in ClickHouse, a statement goes on without its client unless a setting says otherwise.
	ctx := context.Background()
	if v := settings["cancel_http_readonly_queries_on_client_close"]; v == "1" || v == "true" {
		ctx = r.Context()
	}
	format := cmp.Or(params.Get("default_format"), r.Header.Get("X-ClickHouse-Format"), "TabSeparated")
	out, err := h.runner.run(ctx, statement, func(marked string) (*result, error) { return s.query(marked, format, bound) })
	return out, outputFormat(statement, format), err
}

// pieces returns a function that returns the next piece of r, and nothing at its end.
func pieces(r io.Reader) func() ([]byte, error) {
	buf := make([]byte, 1<<20)
	return func() ([]byte, error) {
		n := 0
		for n < len(buf) {
			m, err := r.Read(buf[n:])
			n += m
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, err
			}
		}
		return buf[:n], nil
	}
}

// frameReader decompresses frames. Its last error stays: the reader of ch-go would return the last
// frame again after the end.
type frameReader struct {
	r   *compress.Reader
	err error
}

func (f *frameReader) Read(p []byte) (n int, err error) {
	if f.err == nil {
		n, f.err = f.r.Read(p)
	}
	if errors.Is(f.err, io.EOF) {
		f.err = io.EOF
	}
	return n, f.err
}

// answer writes the output of a statement.
func (h *httpHandler) answer(w http.ResponseWriter, params url.Values, out *result, format string) error {
	data := out.data
	if version, _ := strconv.ParseUint(params.Get("client_protocol_version"), 10, 64); format == "Native" && version > 0 {
		var buf proto.Buffer
		if err := eachBlock(data, func(b *chgo.Block) error { return b.Encode(&buf, version) }); err != nil {
			return err
		}
		data = buf.Buf
	}
	if params.Get("compress") == "1" && len(data) > 0 {
		var err error
		if data, err = frames(data, methodOf(params.Get("network_compression_method"))); err != nil {
			return err
		}
	}
	w.Header().Set("X-ClickHouse-Format", format)
	w.Header().Set("X-ClickHouse-Summary", fmt.Sprintf(
		`{"read_rows":"%d","read_bytes":"%d","written_rows":"%d","written_bytes":"%d","elapsed_ns":"%d"}`,
		out.rowsRead, out.bytesRead, out.rowsWritten, out.bytesWritten, int64(out.elapsed*1e9)))
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Write(data) //nolint:errcheck // the client may have left
	return nil
}

// frames compresses data as ClickHouse does, in frames of at most 1 MiB.
func frames(data []byte, method compress.Method) ([]byte, error) {
	var out bytes.Buffer
	cw := compress.NewWriter(compress.LevelZero, method)
	for len(data) > 0 {
		n := min(len(data), 1<<20)
		if err := cw.Compress(data[:n]); err != nil {
			return nil, err
		}
		out.Write(cw.Data)
		data = data[n:]
	}
	return out.Bytes(), nil
}

func writeError(w http.ResponseWriter, err error) {
	var e *exception
	if !errors.As(err, &e) {
		e = newException(err.Error())
	}
	log.Print(e.text)
	w.Header().Set("X-ClickHouse-Exception-Code", strconv.Itoa(e.code))
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	w.WriteHeader(statusOf(e.code))
	io.WriteString(w, e.text+"\n") //nolint:errcheck // the client may have left
}

// statusOf returns the HTTP status that ClickHouse sends for the code of an exception.
func statusOf(code int) int {
	switch code {
	case 62, 27, 6, 38, 41, 69, 70, 42, 43, 44, 47, 50, 72, 36, 53, 386: // errors in the statement
		return http.StatusBadRequest
	case 60, 81, 16, 46, 115:
		return http.StatusNotFound
	case 241:
		return http.StatusInternalServerError
	case 202:
		return http.StatusTooManyRequests
	case 159, 209:
		return http.StatusRequestTimeout
	case 48:
		return http.StatusNotImplemented
	}
	return http.StatusInternalServerError
}

package canary

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// requestTimeout is the maximum time for a request including its response.
	requestTimeout = 30 * time.Second
	// maxAnswer is the maximum number of bytes read from a response, many times the size of a
	// trace.
	maxAnswer = 4 << 20
	// maxQuoted is the maximum number of bytes quoted from an unexpected response.
	maxQuoted = 200
	// searchLimit is the limit of a search. It is above 1 so that a second trace, which is an
	// error, is found, too.
	searchLimit = 5
)

// way is a way to read a trace.
type way int

const (
	byID way = iota
	bySearch
	ways
)

// String returns the name in metrics and logs.
func (w way) String() string { return [...]string{"id", "search"}[w] }

// api sends the requests: spans to otlp, queries to query. Both are URLs without a trailing slash.
type api struct {
	otlp, query string
	header      http.Header
	transport   http.RoundTripper
}

// write sends an ExportTraceServiceRequest. It returns nil if all spans were acknowledged.
func (a *api) write(ctx context.Context, body []byte) error {
	status, answer, err := a.do(ctx, http.MethodPost, a.otlp+"/v1/traces", body)
	if err != nil {
		return err
	}
	if status/100 != 2 {
		return unexpected(status, answer)
	}
	return rejected(answer)
}

// rejected reads an ExportTraceServiceResponse and returns an error if spans were rejected.
func rejected(answer []byte) error {
	partial, err := field(answer, 1, protowire.BytesType)
	if err != nil {
		return fmt.Errorf("response is not an ExportTraceServiceResponse: %w", err)
	}
	count, err := field(partial, 1, protowire.VarintType)
	if err != nil {
		return fmt.Errorf("response is not an ExportTraceServiceResponse: %w", err)
	}
	if n, _ := protowire.ConsumeVarint(count); n > 0 {
		return fmt.Errorf("%d spans were rejected", n)
	}
	return nil
}

// field returns the value of a field, or nil. Repeated length-delimited values are concatenated;
// otherwise the last value counts.
func field(message []byte, num protowire.Number, typ protowire.Type) (value []byte, err error) {
	for len(message) > 0 {
		n, t, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return nil, protowire.ParseError(tag)
		}
		size := protowire.ConsumeFieldValue(n, t, message[tag:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		switch content := message[tag : tag+size]; {
		case n != num || t != typ:
		case typ == protowire.BytesType:
			piece, _ := protowire.ConsumeBytes(content)
			value = append(value, piece...)
		default:
			value = content
		}
		message = message[tag+size:]
	}
	return value, nil
}

// read requests a trace.
func (a *api) read(ctx context.Context, w way, t *trace) ([]shownTrace, error) {
	target := a.query + "/api/traces/" + t.id.String() + "?raw=true" // as stored, without warnings about missing spans
	if w == bySearch {
		target = a.query + "/api/traces?" + searchFor(t).Encode()
	}
	status, body, err := a.do(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	return parseAnswer(status, body)
}

// searchFor returns the parameters of a search that finds only this trace, by attributes of its
// root.
func searchFor(t *trace) url.Values {
	root := &t.spans[0]
	tags, err := json.Marshal(map[string]string{"canary.trace": t.id.String(), t.lookup.shown.Key: fmt.Sprint(t.lookup.shown.Value)})
	if err != nil {
		panic(fmt.Sprintf("BUG: cannot encode strings as JSON: %v", err))
	}
	micros := func(ns uint64) string { return strconv.FormatUint(ns/1000, 10) }
	return url.Values{
		"service": {root.service.name}, "operation": {root.name}, "tags": {string(tags)}, "limit": {strconv.Itoa(searchLimit)},
		"start": {micros(root.start)}, "end": {micros(root.end)}, "raw": {"true"},
	}
}

const notFound = "trace not found"

// parseAnswer reads a response of the query API. A missing trace is not an error.
func parseAnswer(status int, body []byte) ([]shownTrace, error) {
	var answer struct {
		Data   []shownTrace `json:"data"`
		Errors []struct {
			Msg string `json:"msg"`
		} `json:"errors"`
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	err := dec.Decode(&answer)
	switch {
	case err == nil && status == http.StatusNotFound && len(answer.Errors) == 1 && answer.Errors[0].Msg == notFound:
		return nil, nil
	case err == nil && len(answer.Errors) > 0:
		return nil, fmt.Errorf("status %d: %s", status, answer.Errors[0].Msg)
	case status != http.StatusOK:
		return nil, unexpected(status, body)
	case err != nil:
		return nil, fmt.Errorf("reading response: %w", err)
	}
	return answer.Data, nil
}

func unexpected(status int, body []byte) error {
	return fmt.Errorf("status %d: %s", status, strings.TrimSpace(string(body[:min(len(body), maxQuoted)])))
}

var errTooLong = errors.New("response is larger than any canary trace")

// do sends a request. It does not follow redirects, because the headers may contain credentials.
func (a *api) do(ctx context.Context, method, target string, body []byte) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	maps.Copy(req.Header, a.header)
	if body != nil {
		req.Header.Set("Content-Type", "application/x-protobuf")
	}
	resp, err := a.transport.RoundTrip(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // the body was read
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("reading response (status %d): %w", resp.StatusCode, err)
	case len(answer) > maxAnswer:
		return 0, nil, errTooLong
	}
	return resp.StatusCode, answer, nil
}

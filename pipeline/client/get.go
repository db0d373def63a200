package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// Get asks for a resource with the configured headers. An answer of any status is no error; one whose body has more than most bytes is.
func (h *HTTP) Get(ctx context.Context, url string, most int64) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Answer{}, err
	}
	h.setHeaders(req, nil)
	req.Header.Del("Content-Encoding") // there is no content
	resp, err := h.transport.RoundTrip(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // what matters was read
	answer := Answer{Status: resp.StatusCode, Header: resp.Header}
	if answer.Body, err = io.ReadAll(io.LimitReader(resp.Body, most+1)); err != nil {
		return Answer{}, fmt.Errorf("reading the answer (%s): %w", resp.Status, err)
	}
	if int64(len(answer.Body)) > most {
		return Answer{}, fmt.Errorf("the answer (%s) is larger than %d bytes", resp.Status, most)
	}
	return answer, nil
}

package storetool

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// Times of requests.
const (
	requestTimeout = 2 * time.Minute
	firstWait      = time.Second
	lastWait       = 30 * time.Second
	maxAnswer      = 64 << 10 // maximum bytes of a response to read
)

// round sends requests at the same time, and returns when all are acknowledged or one cannot be.
func (l *loader) round(ctx context.Context, tenant string, list [][]byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(list))
	var wait sync.WaitGroup
	for i, body := range list {
		wait.Go(func() {
			if errs[i] = l.deliver(ctx, tenant, body); errs[i] != nil {
				cancel()
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return errors.Join(errs...)
}

// deliver sends a request until it is acknowledged, rejected, or ctx ends.
func (l *loader) deliver(ctx context.Context, tenant string, body []byte) error {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		after, err := l.post(ctx, tenant, body)
		var refused *rejectedError
		if err == nil || errors.As(err, &refused) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l.logRetry(err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(wait, after)):
		}
	}
}

// logRetry logs why a request is resent.
func (l *loader) logRetry(err error) {
	l.logging.Lock()
	defer l.logging.Unlock()
	fmt.Fprintf(l.log, "load: %v; will retry\n", err)
}

// rejectedError is a response that a retry would not change.
type rejectedError struct{ text string }

func (e *rejectedError) Error() string { return e.text }

// post sends a request once and follows no redirects. after is the delay that the receiver requests
// before a retry. Errors other than rejectedError are temporary.
func (l *loader) post(ctx context.Context, tenant string, body []byte) (after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader(body))
	if err != nil {
		return 0, &rejectedError{err.Error()}
	}
	for name, values := range l.headers {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	if tenant != "" {
		req.Header.Set(l.tenantHeader, tenant)
	}
	resp, err := l.transport.RoundTrip(req)
	if wrong := (*tls.CertificateVerificationError)(nil); errors.As(err, &wrong) {
		return 0, &rejectedError{err.Error()}
	}
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return 0, checkAnswer(answer)
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return min(time.Duration(max(seconds, 0))*time.Second, lastWait), fmt.Errorf("receiver responded with %s", resp.Status)
	}
	return 0, &rejectedError{fmt.Sprintf("receiver responded with %s: %.200q", resp.Status, answer)}
}

// checkAnswer returns an error if the receiver rejected spans of a request.
func checkAnswer(answer []byte) error {
	r := ptraceotlp.NewExportResponse()
	if err := r.UnmarshalProto(answer); err != nil {
		return &rejectedError{"endpoint does not speak OTLP: " + err.Error()}
	}
	if n := r.PartialSuccess().RejectedSpans(); n > 0 {
		return &rejectedError{fmt.Sprintf("receiver rejected %d spans: %.200q", n, r.PartialSuccess().ErrorMessage())}
	}
	return nil
}

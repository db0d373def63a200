package pipelinetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// inlet is a minimal receiver for OTLP over HTTP.
type inlet struct {
	*server.HTTP
	stop func(ctx context.Context, stop func(context.Context) error) error
}

func (i *inlet) Addr(string) string { return i.HTTP.Addr() }

func (i *inlet) Stop(ctx context.Context) error { return i.stop(ctx, i.HTTP.Stop) }

var (
	_ pipeline.Addressed = (*inlet)(nil)
	_ pipeline.Stopper   = (*inlet)(nil)
)

// handler handles the body of a request.
type handler func(ctx context.Context, body []byte, next pipeline.Consumer) error

// handle is a correct handler.
func handle(ctx context.Context, body []byte, next pipeline.Consumer) error {
	b, err := otlpdata.FromOTLP(body, otlpdata.Meta{Format: "otlp", Transport: "http", Received: time.Now()}, otlpdata.Limits{})
	if err != nil {
		return pipeline.Permanent(err)
	}
	return next.Consume(ctx, b)
}

func stopAtOnce(ctx context.Context, stop func(context.Context) error) error { return stop(ctx) }

// receiver returns a subject for an inlet.
func receiver(h handler, stop func(context.Context, func(context.Context) error) error) *subject {
	f := pipeline.Receiver("inlet", func() server.HTTPConfig { return server.DefaultHTTPConfig("localhost:4000") },
		func(set pipeline.Settings, c server.HTTPConfig, next pipeline.Consumer) (*inlet, error) {
			s, err := server.NewHTTP(set, "http", c, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := server.ReadBody(r)
				if err == nil {
					err = h(r.Context(), body, next)
				}
				if partialOf(err) != nil {
					err = nil
				}
				code, _ := pipeline.HTTPStatus(err)
				w.WriteHeader(code)
			}))
			return &inlet{s, stop}, err
		})
	return receiverSubject(f.Doc("Receives."), ReceiverOptions{Config: "endpoint: localhost:0", Send: post})
}

// post sends spans to an inlet.
func post(ctx context.Context, addr string, td ptrace.Traces) error {
	body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	switch {
	case resp.StatusCode == http.StatusOK:
		return nil
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= http.StatusInternalServerError:
		return errors.New(resp.Status)
	}
	return pipeline.Permanent(errors.New(resp.Status))
}

func TestCorrectReceiverPasses(t *testing.T) {
	sub := receiver(handle, stopAtOnce)
	Receiver(t, sub.factory, ReceiverOptions{Config: "endpoint: localhost:0", Send: sub.send})
}

func TestFaultyReceivers(t *testing.T) {
	expect(t, "outcomes are passed on", receiver(func(ctx context.Context, body []byte, next pipeline.Consumer) error {
		handle(ctx, body, next) //nolint:errcheck // this is the fault
		return nil
	}, stopAtOnce), "acknowledged")
	expect(t, "outcomes are passed on", receiver(func(ctx context.Context, body []byte, next pipeline.Consumer) error {
		return pipeline.Permanent(handle(ctx, body, next))
	}, stopAtOnce), "but the response is permanent")
	expect(t, "every span arrives once", receiver(func(ctx context.Context, body []byte, next pipeline.Consumer) error {
		return errors.Join(handle(ctx, body, next), handle(ctx, body, next))
	}, stopAtOnce), "arrived 2 times")
	expect(t, "every span arrives once", receiver(func(ctx context.Context, body []byte, next pipeline.Consumer) error {
		b, err := otlpdata.FromOTLP(body, otlpdata.Meta{}, otlpdata.Limits{})
		if err != nil {
			return err
		}
		return next.Consume(ctx, b)
	}, stopAtOnce), "Meta.Format is empty")
}

// TestUnansweredReceivers tests receivers for protocols without answers.
func TestUnansweredReceivers(t *testing.T) {
	var lose atomic.Bool
	silent := func(send func(context.Context, string, ptrace.Traces) error) ReceiverOptions {
		discard := func(ctx context.Context, addr string, td ptrace.Traces) error {
			send(ctx, addr, td) //nolint:errcheck // the protocol has no answers
			return nil
		}
		return ReceiverOptions{Config: "endpoint: localhost:0", Unanswered: true, Send: discard}
	}
	sub := receiver(handle, stopAtOnce)
	Receiver(t, sub.factory, silent(post))
	lossy := receiverSubject(sub.factory, silent(func(ctx context.Context, addr string, td ptrace.Traces) error {
		if lose.CompareAndSwap(false, true) {
			return nil
		}
		return post(ctx, addr, td)
	}))
	expect(t, "every span has arrived after Stop", lossy, "did not arrive")
}

// TestReceiverThatReusesABuffer tests a receiver that reuses the memory of a batch that it passed
// on.
func TestReceiverThatReusesABuffer(t *testing.T) {
	var mu sync.Mutex
	var buf []byte
	expect(t, "batches are not modified", receiver(func(ctx context.Context, body []byte, next pipeline.Consumer) error {
		mu.Lock()
		defer mu.Unlock()
		buf = append(buf[:0], body...)
		return handle(ctx, buf, next)
	}, stopAtOnce), "passed on by the component")
}

// TestReceiverThatLosesSpansWhenItStops tests a receiver that acknowledges everything while it
// stops.
func TestReceiverThatLosesSpansWhenItStops(t *testing.T) {
	stopping, lost := make(chan struct{}), make(chan struct{})
	var once sync.Once
	expect(t, "stops under load", receiver(func(ctx context.Context, body []byte, next pipeline.Consumer) error {
		select {
		case <-stopping:
			once.Do(func() { close(lost) })
			return nil
		default:
			return handle(ctx, body, next)
		}
	}, func(ctx context.Context, stop func(context.Context) error) error {
		close(stopping)
		<-lost
		return stop(ctx)
	}), "did not arrive")
}

// TestReceiverThatDoesNotReportCanceledCalls tests a receiver whose Stop cancels calls and returns
// nil.
func TestReceiverThatDoesNotReportCanceledCalls(t *testing.T) {
	expect(t, "stops at the deadline", receiver(handle, func(ctx context.Context, stop func(context.Context) error) error {
		stop(ctx) //nolint:errcheck // this is the fault
		return nil
	}), "returned nil")
}

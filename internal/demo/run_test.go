package demo

import (
	"compress/gzip"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
)

// receiver counts the spans of requests, and refuses what refuse selects by number, from 1.
func receiver(t *testing.T, refuse func(n int64) bool) (url string, spans *atomic.Int64) {
	spans = new(atomic.Int64)
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse(requests.Add(1)) {
			http.Error(w, "full", http.StatusBadRequest)
			return
		}
		if r.URL.Path != "/v1/traces" || r.Header.Get("x-tenant") != "birds" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		body, err := otlpBody(r)
		if err != nil {
			t.Error(err)
			return
		}
		b, err := otlpdata.FromOTLP(body, otlpdata.Meta{}, otlpdata.Limits{})
		if err != nil {
			t.Error(err)
			return
		}
		spans.Add(int64(b.Len()))
	}))
	t.Cleanup(server.Close)
	return server.URL, spans
}

func testOptions(url string) Options {
	return Options{OTLP: url, Header: http.Header{"X-Tenant": {"birds"}}, Rate: 5, Seed: 1, Backfill: time.Minute, Once: true,
		Now: func() time.Time { return noon }}
}

// All spans of a run are acknowledged, or counted as not acknowledged.
func TestCounts(t *testing.T) {
	soak.SkipIfRaced(t)
	f := func(refuse func(int64) bool, complete bool) {
		t.Helper()
		url, spans := receiver(t, refuse)
		s, err := Run(t.Context(), testOptions(url))
		if err != nil || s.Requests < 200 || s.Spans < 10*s.Requests || int64(s.Acknowledged) != spans.Load() ||
			(s.Spans == s.Acknowledged) != complete {
			t.Errorf("%v: %s, received %d", err, s, spans.Load())
		}
		if !complete && !strings.Contains(s.String(), "not acknowledged: ") {
			t.Error(s)
		}
	}
	f(func(int64) bool { return false }, true)
	f(func(n int64) bool { return n == 3 }, false)
}

// Without a receiver, a run ends with the reason.
func TestUnreachable(t *testing.T) {
	url, _ := receiver(t, func(int64) bool { return true })
	if s, err := Run(t.Context(), testOptions(url)); err == nil || !strings.Contains(err.Error(), "full") || s.Acknowledged != 0 {
		t.Errorf("%v, %v", s, err)
	}
}

// Spans that are left when the time for sending them ends are counted as not acknowledged.
func TestSlowReceiver(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // the client may have gone
		<-r.Context().Done()
	}))
	defer server.Close()
	o := testOptions(server.URL)
	r, err := newRun(t.Context(), &o, noon)
	if err != nil {
		t.Fatal(err)
	}
	r.shop.second(noon)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s := r.finish(ended)
	want := fmt.Sprintf("%d not acknowledged: sending the last spans: context canceled", s.Spans)
	if s.Spans == 0 || s.Acknowledged != 0 || !strings.HasSuffix(s.String(), want) {
		t.Errorf("%s, want %s", s, want)
	}
}

// A redirect is an error: headers are not sent to another address.
func TestRedirect(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s follows the redirect with %v", r.Method, r.Header)
	}))
	defer other.Close()
	for _, status := range []int{http.StatusFound, http.StatusPermanentRedirect} {
		server := httptest.NewServer(http.RedirectHandler(other.URL+"/v1/traces", status))
		if s, err := Run(t.Context(), testOptions(server.URL)); err == nil || !strings.Contains(err.Error(), strconv.Itoa(status)) {
			t.Errorf("status %d: %v, %s", status, err, s)
		}
		server.Close()
	}
}

// The variables of the exporter, which are for the self-tracing of the process, do not change how
// spans are sent.
func TestExporterEnvironment(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(file, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", file)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", secure.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=fish")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
	url, spans := receiver(t, func(int64) bool { return false })
	s, err := Run(t.Context(), testOptions(url))
	if err != nil || s.Spans == 0 || int64(s.Spans) != spans.Load() || s.Acknowledged != s.Spans {
		t.Errorf("%v: %s, received %d", err, s, spans.Load())
	}
}

// A run that is stopped sends what it has begun.
func TestStop(t *testing.T) {
	url, spans := receiver(t, func(int64) bool { return false })
	ctx, cancel := context.WithCancel(t.Context())
	o := testOptions(url)
	o.Once, o.Now = false, time.Now
	o.Backfilled = func(s Summary) {
		if s.Spans == 0 || s.Spans != s.Acknowledged || s.Version != "2.14.0" || s.Deployed.IsZero() {
			t.Errorf("%+v", s)
		}
		time.AfterFunc(1500*time.Millisecond, cancel) // about one second of the present
	}
	s, err := Run(ctx, o)
	if err != nil || s.Spans != s.Acknowledged || int64(s.Spans) != spans.Load() || ctx.Err() == nil {
		t.Errorf("%v: %s, received %d", err, s, spans.Load())
	}
}

// otlpBody returns the body of a request without its compression.
func otlpBody(r *http.Request) ([]byte, error) {
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

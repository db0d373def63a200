package canary

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// Headers may contain credentials, so they are only sent to the configured host.
func TestRedirectsAreNotFollowed(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stolen" || r.Header.Get("Authorization") != "secret" {
			t.Errorf("%s %s", r.URL, r.Header)
		}
		http.Redirect(w, r, "/stolen", http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	transport := &http.Transport{DisableKeepAlives: true}
	a := api{otlp: srv.URL, query: srv.URL, header: http.Header{"Authorization": {"secret"}}, transport: transport}
	if err := a.write(t.Context(), []byte{}); err == nil || !strings.HasPrefix(err.Error(), "status 307") {
		t.Error(err)
	}
	if _, err := a.read(t.Context(), byID, generate(1, someTime)); err == nil || !strings.HasPrefix(err.Error(), "status 307") {
		t.Error(err)
	}
}

// Spans that the collector library treats as rejected are never treated as acknowledged.
func FuzzRejected(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x0a\x02\x08\x03"))
	f.Add([]byte("\x0a\x0b\x08\x03\x12\x07invalid"))
	f.Add([]byte("\x0a\x02\x08\x03\x0a\x00"))
	f.Add([]byte("\x0a\xff\xff\xff\xff\x0f\x08"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		err, oracle := rejected(answer), ptraceotlp.NewExportResponse()
		if oracle.UnmarshalProto(answer) == nil && oracle.PartialSuccess().RejectedSpans() != 0 && err == nil {
			t.Errorf("%d spans were rejected", oracle.PartialSuccess().RejectedSpans())
		}
	})
}

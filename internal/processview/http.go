package processview

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// Paths of the routes of the admin extension.
const (
	PathStatus   = "/status/details"
	PathSampling = "/sampling"
	PathExplain  = "/sampling/explain"
)

// Handlers serves the state of a process as JSON. Callers assign the paths.
type Handlers struct{ Process Process }

// Status serves a status.Details.
func (h Handlers) Status(w http.ResponseWriter, r *http.Request) {
	write(w, h.Process.Details(r.Context()))
}

// Sampling serves the [Strategies] of the tenant in the parameter `tenant`.
func (h Handlers) Sampling(w http.ResponseWriter, r *http.Request) {
	write(w, Sampling(r.Context(), h.Process, r.URL.Query().Get("tenant")))
}

// Explain serves an [Explanation] for the parameters `service`, `operation`, `trace` and `tenant`.
func (h Handlers) Explain(w http.ResponseWriter, r *http.Request) {
	q, err := ParseQuestion(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q.Tenant = r.URL.Query().Get("tenant")
	write(w, Explain(r.Context(), h.Process, q))
}

var errTraceID = errors.New("'trace' must be a trace id of at most 32 hex digits that are not all 0")

// maxQuestion is the maximum length of a name in a question, in bytes.
const maxQuestion = 1 << 10

var errLongName = errors.New("'service' and 'operation' must not be longer than 1024 bytes")

// ParseQuestion reads a question, without its tenant, from parameters.
func ParseQuestion(v url.Values) (Question, error) {
	q := Question{Service: v.Get("service"), Operation: v.Get("operation")}
	if len(q.Service) > maxQuestion || len(q.Operation) > maxQuestion {
		return q, errLongName
	}
	text := strings.TrimSpace(v.Get("trace"))
	if text == "" {
		return q, nil
	}
	const digits = 2 * len(sampling.TraceID{})
	if len(text) > digits {
		return q, errTraceID
	}
	b, err := hex.DecodeString(strings.Repeat("0", digits-len(text)) + text)
	if err != nil {
		return q, errTraceID
	}
	if q.Trace = sampling.TraceID(b); q.Trace == (sampling.TraceID{}) {
		return q, errTraceID
	}
	return q, nil
}

// Values returns the parameters for a question, with the tenant.
func (q *Question) Values() url.Values {
	v := url.Values{}
	set := func(key, value string) {
		if value != "" {
			v.Set(key, value)
		}
	}
	set("tenant", q.Tenant)
	set("service", q.Service)
	set("operation", q.Operation)
	if q.Trace != (sampling.TraceID{}) {
		set("trace", hex.EncodeToString(q.Trace[:]))
	}
	return v
}

func write(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(body, '\n')) //nolint:errcheck // fails only if the client is gone
}

package sampling

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
)

// Handlers serves strategies over HTTP. Its methods are handlers; callers assign the paths.
type Handlers struct {
	Provider Provider
	Tenant   func(context.Context) string // returns the tenant of the request
	Client   func(context.Context) string // returns the address of the client of the request
}

// Strategy serves the strategy of a service, with the type as a word.
func (h Handlers) Strategy(w http.ResponseWriter, r *http.Request) {
	h.strategy(w, r, TransportHTTP, (*Strategy).MarshalJSON)
}

// LegacyStrategy serves the form of old agents, with the type as a number.
func (h Handlers) LegacyStrategy(w http.ResponseWriter, r *http.Request) {
	h.strategy(w, r, TransportLegacy, (*Strategy).LegacyJSON)
}

func (h Handlers) strategy(w http.ResponseWriter, r *http.Request, transport string, encode func(*Strategy) ([]byte, error)) {
	service, ok := requestedService(w, r)
	if !ok {
		return
	}
	client := Client{Address: h.Client(r.Context()), UserAgent: r.UserAgent(), Transport: transport}
	a, err := h.Provider.Strategy(r.Context(), Request{Tenant: h.Tenant(r.Context()), Service: service, Client: client})
	if err != nil {
		http.Error(w, "collector error: "+err.Error(), http.StatusInternalServerError)
		return
	}
	body, err := encode(a.Strategy)
	if err != nil {
		http.Error(w, "cannot marshall to JSON", http.StatusInternalServerError) // spelling expected by clients
		return
	}
	writeJSON(w, body)
}

// Baggage returns a handler for requests for baggage restrictions. As in other agents and
// collectors, they always fail. msg is the error text.
func (h Handlers) Baggage(msg string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, ok := requestedService(w, r); ok {
			http.Error(w, "collector error: "+msg, http.StatusInternalServerError)
		}
	}
}

// Explain serves an [Explanation].
func (h Handlers) Explain(w http.ResponseWriter, r *http.Request) {
	service, ok := requestedService(w, r)
	if !ok {
		return
	}
	e, ok := h.Provider.(Explainer)
	if !ok {
		http.Error(w, "sampling provider does not support explanations", http.StatusNotFound)
		return
	}
	operations := r.URL.Query()["operation"]
	if len(operations) > 1 {
		http.Error(w, "'operation' parameter must be provided once at most", http.StatusBadRequest)
		return
	}
	explanation, err := e.Explain(r.Context(), h.Tenant(r.Context()), service, strings.Join(operations, ""))
	if err != nil {
		http.Error(w, "collector error: "+err.Error(), http.StatusInternalServerError)
		return
	}
	body, err := json.MarshalIndent(explanation, "", "  ")
	if err != nil {
		http.Error(w, "cannot marshall to JSON", http.StatusInternalServerError)
		return
	}
	writeJSON(w, append(body, '\n'))
}

// requestedService returns the service parameter of a GET request; it may be empty. If the request
// is invalid, it sends a response and returns false.
func requestedService(w http.ResponseWriter, r *http.Request) (service string, ok bool) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return "", false
	}
	services := r.URL.Query()["service"]
	if len(services) != 1 {
		http.Error(w, "'service' parameter must be provided once", http.StatusBadRequest)
		return "", false
	}
	return strings.Clone(services[0]), true // cloned so that the name does not keep the whole query in memory
}

func writeJSON(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(body) //nolint:errcheck // fails only if the client is gone
}

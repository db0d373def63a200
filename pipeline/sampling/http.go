package sampling

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
)

// HTTP answers what clients ask over HTTP. Its methods are handlers; which paths they have is up to who serves them.
type HTTP struct {
	Provider Provider
	Tenant   func(context.Context) string // of the request that a handler serves
}

// Strategy answers with the strategy of a service, its type as a word.
func (h HTTP) Strategy(w http.ResponseWriter, r *http.Request) {
	h.strategy(w, r, TransportHTTP, (*Strategy).MarshalJSON)
}

// LegacyStrategy answers as agents did long ago: the type is a number.
func (h HTTP) LegacyStrategy(w http.ResponseWriter, r *http.Request) {
	h.strategy(w, r, TransportLegacy, (*Strategy).LegacyJSON)
}

func (h HTTP) strategy(w http.ResponseWriter, r *http.Request, transport string, encode func(*Strategy) ([]byte, error)) {
	service, ok := asksForService(w, r)
	if !ok {
		return
	}
	a, err := h.Provider.Strategy(r.Context(), Question{Tenant: h.Tenant(r.Context()), Service: service, Asker: askerOf(r, transport)})
	if err != nil {
		http.Error(w, "collector error: "+err.Error(), http.StatusInternalServerError)
		return
	}
	body, err := encode(a.Strategy)
	if err != nil {
		http.Error(w, "cannot marshall to JSON", http.StatusInternalServerError) // spelt as clients know it
		return
	}
	writeJSON(w, body)
}

// Baggage returns a handler that answers questions for restrictions of baggage as all agents and collectors do: with an error, whose text
// is msg.
func (h HTTP) Baggage(msg string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, ok := asksForService(w, r); ok {
			http.Error(w, "collector error: "+msg, http.StatusInternalServerError)
		}
	}
}

// Explain answers with an [Explanation].
func (h HTTP) Explain(w http.ResponseWriter, r *http.Request) {
	service, ok := asksForService(w, r)
	if !ok {
		return
	}
	e, ok := h.Provider.(Explainer)
	if !ok {
		http.Error(w, "the sampling provider does not explain itself", http.StatusNotFound)
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

// asksForService returns the service that a GET names, which may be the empty name. Anything else is answered here.
func asksForService(w http.ResponseWriter, r *http.Request) (service string, ok bool) {
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
	return strings.Clone(services[0]), true // whoever keeps the name does not keep the whole query
}

func askerOf(r *http.Request, transport string) Asker {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return Asker{Address: host, Client: r.UserAgent(), Transport: transport}
}

func writeJSON(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(body) //nolint:errcheck // the client is gone, nothing is left to tell it
}

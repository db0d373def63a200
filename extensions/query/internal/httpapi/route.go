package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Route is a handler for a method and a path, for example "GET /api/services".
type Route struct {
	Pattern string
	Handler http.HandlerFunc
}

// NewMux returns a ServeMux with routes under base, which is "" or begins with a slash. Paths below
// /api/ that are not routes, or that are requested with another method, get 404.
func NewMux(base string, routes []Route) *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range routes {
		method, path, _ := strings.Cut(r.Pattern, " ")
		mux.HandleFunc(method+" "+base+path, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Cache-Control", "no-store") // the same request may find more spans a moment later
			r.Handler(w, req)
		})
	}
	mux.HandleFunc(base+"/api/", notFound)
	return mux
}

// notFound responds to a request for a path below /api/ that is not a route.
func notFound(w http.ResponseWriter, r *http.Request) {
	body, err := json.Marshal(envelope{Footer: Footer{Errors: []Error{{Code: http.StatusNotFound,
		Msg: "no API has " + r.Method + " " + r.URL.Path + "; see docs/apis.md"}}}})
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusNotFound)
	w.Write(body) //nolint:errcheck // the client has disconnected
}

// Version describes the running program, in the form that the web UI reads.
type Version struct {
	Commit  string `json:"gitCommit"`
	Version string `json:"gitVersion"`
	Date    string `json:"buildDate"`
}

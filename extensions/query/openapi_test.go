package query

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/demodata"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/deployment"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/live"
)

// documentedAs are the routes of patterns that are not paths of OpenAPI.
var documentedAs = map[string]string{
	"GET /api/services/{rest...}":            "GET /api/services/{service}/operations", // names with slashes
	"GET /tempo/api/search/tag/{rest...}":    "GET /tempo/api/search/tag/{key}/values",
	"GET /tempo/api/v2/search/tag/{rest...}": "GET /tempo/api/v2/search/tag/{field}/values",
}

// TestOpenAPI compares the routes in docs/openapi.json with the routes of the HTTP APIs.
func TestOpenAPI(t *testing.T) {
	text, err := os.ReadFile("../../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	var documented []string
	for path, methods := range document.Paths {
		for method := range methods {
			documented = append(documented, strings.ToUpper(method)+" "+path)
		}
	}
	b, _ := querytest.NewBackend(t, querytest.NewStore(querytest.Shop()))
	others := append(deployment.New(b, nil, nil, false).Routes(), demodata.New(b, demodata.Options{}).Routes()...)
	var existing []string
	for _, r := range apiRoutes(b, uiapi.Options{}, live.New(b, live.DefaultConfig()), others) {
		route := r.Pattern
		if name, other := documentedAs[route]; other {
			route = name
		}
		existing = append(existing, route)
	}
	slices.Sort(existing)
	existing = slices.Compact(existing)
	covered := 0
	for _, route := range existing {
		if slices.Contains(documented, route) {
			covered++
		} else {
			t.Errorf("%s is not in docs/openapi.json", route)
		}
	}
	for _, route := range documented {
		if !slices.Contains(existing, route) {
			t.Errorf("%s is in docs/openapi.json, and no route", route)
		}
	}
	t.Logf("routes: %d covered / %d existing", covered, len(existing))
}

// Package query is the extension that serves stored traces to users and client programs, from any store that can be read:
// several JSON APIs over HTTP and the query services over gRPC.
//
// # The path of a query
//
//  1. newQuery (query.go) builds one core.Backend over the store, the listeners, and the handlers of each API.
//  2. The HTTP listener (pipeline/server) authenticates the client, determines its tenant, and calls the handler that
//     newRoutes (routes.go) returns. httpapi.PassToken keeps the bearer token for remote stores, httpapi.Compress
//     compresses the answer, and httpapi.NewMux calls the API. The gRPC listener calls the services of internal/grpcapi.
//  3. The API parses the request. GET /api/traces, for example, is (*jaegerapi.API).search, which makes a core.Search of
//     the parameters. Mistakes are answered with 400 before anything is reserved.
//  4. core.Backend.Admit admits the query, or answers that there are too many. The core.Slot that it returns has the
//     time limit and the memory of the query.
//  5. The API asks the store through the Slot, within core.Backend.Measure, which counts: Slot.Find for searches,
//     Slot.Trace for one trace, Slot.Services, Slot.Aggregate and others. Slot.SearchQuery makes a tracestore.Query, with
//     the tenant and the budget of Limits, of a core.Search. The extensions/query package does not know which store answers.
//  6. For each trace, the store passes OTLP bytes to the API. internal/translate/adjust corrects them, and uijson,
//     otlpjson, otlpchunks or native writes them in the format of the API. Slot reserves memory for the bytes.
//  7. httpapi.Stream sends the answer in parts. core.Backend.HTTPError maps an error to a status code as long as nothing
//     was sent; afterwards core.Backend.Abort closes the connection. Slot.Release ends the query.
//
// # Packages
//
// internal/core is what all APIs share, internal/httpapi what those over HTTP share, and internal/spanmetrics calculates
// call rates. Each API is one package: jaegerapi (/api), v3 (/api/v3), pageapi (/api/ui/v1), tempo (/tempo) and grpcapi.
// This package has the configuration, the lifecycle, and the hosting of the web UI (ui.go, ui_page.go).
package query

// Package query is the extension that serves stored traces to users and client programs, from any
// store that can be read: several JSON APIs over HTTP, and the query services over gRPC.
//
// # The path of a query
//
// newQuery (query.go) builds one core.Backend over the store, the handlers of each API, and the
// listeners. A request then takes these steps:
//
//  1. The HTTP listener (pipeline/server) authenticates the client, determines its tenant, and
//     calls the handler that newRoutes (routes.go) returned. httpapi.PassToken keeps the bearer
//     token for remote storage, httpapi.Compress compresses the response, and httpapi.NewMux calls
//     the API. The gRPC listener calls the services of internal/grpcapi instead, and connections
//     of gRPC on the HTTP listener the streaming service of internal/tempo; grpcapi.PassTokens
//     keeps their bearer tokens.
//  2. The API parses the request. For GET /api/traces, (*jaegerapi.API).search makes a
//     core.Search of the parameters. It responds to mistakes with 400.
//  3. core.Backend.Admit admits the query, or returns an error if there are too many. The
//     core.Slot that it returns has the time limit and the memory of the query.
//  4. The API asks the store through the Slot: Slot.SearchQuery makes a tracestore.Query of the
//     search, with the tenant and the limits, and Slot.Find runs it. Slot.Trace, Slot.Services
//     and Slot.Aggregate are for other requests. Slot.Measure counts and times the query.
//  5. The store is a tracestore.Reader, such as the `disk` or `memory` exporter. It returns each trace
//     as OTLP bytes, for which the Slot reserves memory.
//  6. internal/translate/adjust corrects the trace, and uijson, otlpjson, otlpchunks or native
//     write it in the format of the API.
//  7. httpapi.Stream sends the response in parts. As long as nothing was sent,
//     core.Backend.HTTPError maps an error to a status code; afterwards core.Backend.Abort closes
//     the connection. Slot.Release ends the query.
//
// # Packages
//
// Each API is one package: jaegerapi (/api), v3 (/api/v3), uiapi (/api/ui/v1), tempo (/tempo) and
// grpcapi. internal/core is shared by all APIs, internal/httpapi by the HTTP APIs, and
// internal/spanmetrics calculates call rates, error rates and latencies. This package contains the
// configuration, the lifecycle, and the hosting of the web UI (ui.go), of the documentation
// (routes.go) and of the Jaeger UI (jaeger_ui.go).
package query

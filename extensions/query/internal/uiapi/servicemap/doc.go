// Package servicemap serves /api/ui/v1/map: the services, and the calls between them with errors
// and durations.
//
//	servicemap.go  parameters and route
//	measure.go     what the store measured: edges, and the requests of services
//	graph.go       the graph: nodes, the neighborhood of a service, the limit
//	answer.go      the format of the response
package servicemap

// Package servicemap serves /api/ui/v1/map: the services, what they call, and how these calls went.
//
//	servicemap.go  parameters and route
//	measure.go     what the store measured: edges, and the requests of services
//	graph.go       the graph: nodes, the surroundings of a service, the limit
//	answer.go      the form of the answer
package servicemap

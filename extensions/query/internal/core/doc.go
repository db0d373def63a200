// Package core contains what all query APIs share: access to the stores, admission of queries,
// limits on the cost of a request, search parameters, metrics, and the mapping of errors to HTTP
// status codes.
//
// An API package reads a request, calls Backend.Admit, queries the store through the returned Slot,
// and writes the response in its own format. It calls Slot.Release when the response is written or
// abandoned.
package core

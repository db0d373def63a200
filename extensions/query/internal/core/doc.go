// Package core is what all query APIs share: access to the stores, admission of queries, limits on
// what an answer may cost, search parameters, metrics, and the mapping of errors to HTTP status
// codes.
//
// An API package reads a request, calls Backend.Admit, asks the store through the Slot that it
// returns, and writes the answer in its own format. It calls Slot.Release when the answer is
// written or abandoned.
package core

// Package live serves GET /api/ui/v1/tail, through which clients watch spans, or summaries of
// traces, as they are stored.
package live

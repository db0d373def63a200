package memory

import (
	"net/http"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storeadmin"
)

var _ pipeline.Administered = (*exporter)(nil)

// AdminHandler returns the HTTP API for deletions.
func (e *exporter) AdminHandler() http.Handler { return storeadmin.Handler(e) }

package disk

import (
	"net/http"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storeadmin"
)

var _ pipeline.Administered = (*exporter)(nil)

// AdminHandler serves deletions to operators.
func (e *exporter) AdminHandler() http.Handler { return storeadmin.Handler(e) }

package jaegerapi

import (
	"fmt"
	"net/http"

	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/internal/translate/uijson"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// transform serves POST /api/transform: it returns spans in OTLP JSON, of any content type, as
// traces. Nothing is stored or adjusted. The listener limits the size of the body and charges it to
// the memory budget of the process.
func (a *API) transform(w http.ResponseWriter, r *http.Request) {
	body, err := server.ReadBody(r)
	if err != nil {
		httpapi.WriteError(w, server.ErrorStatus(w.Header(), err), err.Error())
		return
	}
	batch, err := otlpdata.FromJSON(body, otlpdata.Meta{}, otlpdata.Limits{})
	var traces []spanGroups
	if err == nil {
		traces, err = byTrace(batch)
	}
	if err != nil {
		status, _ := pipeline.HTTPStatus(pipeline.Permanent(err))
		httpapi.WriteError(w, status, fmt.Sprintf("cannot unmarshal OTLP : %v", err))
		return
	}
	l := httpapi.NewList(w, r)
	defer l.Close()
	opt := uijson.Options{Options: adjust.Options{Raw: true}, Flush: l.Stream().Spill}
	for _, t := range traces {
		if l.Add(func(dst []byte) ([]byte, error) { return uijson.AppendTrace(dst, opt, t.batch()) }) != nil {
			return // the client disconnected
		}
	}
	a.backend.LogUndelivered(l.Finish("[]", httpapi.Footer{}))
}

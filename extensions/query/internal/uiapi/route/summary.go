package route

import (
	"encoding/hex"
	"strconv"

	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// AppendSummary appends members of an object that describe a trace, each after a comma.
func AppendSummary(dst []byte, s *tracestore.Summary) []byte {
	dst = append(hex.AppendEncode(append(dst, `,"traceID":"`...), s.ID[:]), '"')
	dst = otlpdata.AppendJSONString(append(dst, `,"rootService":`...), s.RootService)
	dst = otlpdata.AppendJSONString(append(dst, `,"rootName":`...), s.RootName)
	dst = strconv.AppendUint(append(dst, `,"start":"`...), s.Start, 10)
	dst = strconv.AppendUint(append(dst, `","duration":`...), s.End-min(s.Start, s.End), 10)
	dst = strconv.AppendInt(append(dst, `,"spans":`...), int64(s.Spans), 10)
	dst = strconv.AppendInt(append(dst, `,"errors":`...), int64(s.Errors), 10)
	dst = strconv.AppendInt(append(dst, `,"orphans":`...), int64(s.Orphans), 10)
	dst = append(dst, `,"services":[`...)
	for i := range s.Services {
		svc := &s.Services[i]
		dst = otlpdata.AppendJSONString(append(httpapi.Comma(dst, i), `{"name":`...), svc.Name)
		dst = strconv.AppendInt(append(dst, `,"spans":`...), int64(svc.Spans), 10)
		dst = append(strconv.AppendInt(append(dst, `,"errors":`...), int64(svc.Errors), 10), '}')
	}
	return append(dst, ']')
}

package debug

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// writeLogs writes a line for each log record.
func (e *exporter) writeLogs(b *otlpdata.Batch) error {
	ld, err := b.Logs()
	if err != nil {
		return pipeline.Permanent(fmt.Errorf("reading log records: %w", err))
	}
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, r := range sl.LogRecords().All() {
				e.log.Info("log record", append(recordFields(r), e.detail(r, sl, rl)...)...)
			}
		}
	}
	return nil
}

func recordFields(r plog.LogRecord) []zap.Field {
	trace, span := otlpdata.TraceID(r.TraceID()), otlpdata.SpanID(r.SpanID())
	return []zap.Field{zap.Time("time", unixNano(uint64(r.Timestamp()))), zap.String("severity", r.SeverityText()),
		zap.Int32("severity-number", int32(r.SeverityNumber())), zap.String("event-name", r.EventName()), zap.String("body", r.Body().AsString()),
		zap.Stringer("trace-id", trace), zap.Stringer("span-id", span)}
}

// detail returns the other fields of a record with the verbosity detailed.
func (e *exporter) detail(r plog.LogRecord, sl plog.ScopeLogs, rl plog.ResourceLogs) []zap.Field {
	if e.cfg.Verbosity != verbosityDetailed {
		return nil
	}
	return []zap.Field{zap.Time("observed", unixNano(uint64(r.ObservedTimestamp()))), zap.Uint32("flags", uint32(r.Flags())),
		zap.Uint32("dropped-attributes", r.DroppedAttributesCount()), raw("attributes", r.Attributes()),
		zap.String("scope", sl.Scope().Name()), zap.String("scope-version", sl.Scope().Version()),
		raw("scope-attributes", sl.Scope().Attributes()),
		zap.String("scope-schema-url", sl.SchemaUrl()), raw("resource", rl.Resource().Attributes()), zap.String("schema-url", rl.SchemaUrl())}
}

func raw(key string, m pcommon.Map) zap.Field { return zap.Any(key, m.AsRaw()) }

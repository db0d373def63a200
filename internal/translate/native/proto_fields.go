package native

// Field numbers of the messages of api_v2. All are below 16, so that a tag takes one byte.
const (
	requestBatch = 1

	batchSpans   = 1
	batchProcess = 2

	processServiceName = 1
	processTags        = 2

	spanTraceID       = 1
	spanID            = 2
	spanOperationName = 3
	spanReferences    = 4
	spanFlags         = 5
	spanStartTime     = 6
	spanDuration      = 7
	spanTags          = 8
	spanLogs          = 9
	spanProcess       = 10
	spanWarnings      = 12

	refTraceID = 1
	refSpanID  = 2
	refRefType = 3

	logTimestamp = 1
	logFields    = 2

	tagKey     = 1
	tagType    = 2
	tagString  = 3
	tagBool    = 4
	tagInt64   = 5
	tagFloat64 = 6
	tagBinary  = 7

	timeSeconds = 1
	timeNanos   = 2
)

// Values of SpanRefType.
const (
	childOf     byte = 0
	followsFrom byte = 1
)

// Values of ValueType. STRING is 0, the default.
const (
	typeBool    byte = 1
	typeInt64   byte = 2
	typeFloat64 byte = 3
	typeBinary  byte = 4
)

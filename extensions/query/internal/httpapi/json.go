package httpapi

import (
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Comma appends the separator before element i of a list: nothing before the first one.
func Comma(dst []byte, i int) []byte {
	if i == 0 {
		return dst
	}
	return append(dst, ',')
}

// AppendMember appends a comma and the name of a member of an object.
func AppendMember(dst []byte, name string) []byte {
	return append(append(append(dst, `,"`...), name...), `":`...)
}

// AppendString appends a member, unless the text is empty.
func AppendString(dst []byte, name, text string) []byte {
	if text == "" {
		return dst
	}
	return otlpdata.AppendJSONString(AppendMember(dst, name), text)
}

// AppendNanos appends a member with a number of nanoseconds as a string, unless it is 0.
func AppendNanos(dst []byte, name string, ns uint64) []byte {
	if ns == 0 {
		return dst
	}
	return append(strconv.AppendUint(append(AppendMember(dst, name), '"'), ns, 10), '"')
}

// AppendInt appends a member, unless the number is 0.
func AppendInt(dst []byte, name string, n int) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendInt(AppendMember(dst, name), int64(n), 10)
}

// AppendOperation appends an operation as an object.
func AppendOperation(dst []byte, op *tracestore.Operation) []byte {
	dst = otlpdata.AppendJSONString(append(dst, `{"name":`...), op.Name)
	dst = otlpdata.AppendJSONString(append(dst, `,"spanKind":`...), op.Kind)
	return append(dst, '}')
}

// AppendWarnings appends the member `warnings` with one text, unless the text is empty. The member
// is an extension of the compatible APIs.
func AppendWarnings(dst []byte, text string) []byte {
	if text == "" {
		return dst
	}
	return append(otlpdata.AppendJSONString(append(dst, `,"warnings":[`...), text), ']')
}

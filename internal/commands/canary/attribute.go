package canary

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// attribute is an attribute as sent, and the tag that the query API must show for it.
type attribute struct {
	sent  otlpdata.KeyValue
	shown tag
}

func newAttribute(key string, v otlpdata.Value, typ string, value any) attribute {
	return attribute{otlpdata.KeyValue{Key: key, Value: v}, tag{Key: key, Type: typ, Value: value}}
}

func text(key, s string) attribute {
	return newAttribute(key, otlpdata.StringValue(s), "string", s)
}

func boolean(key string, b bool) attribute {
	return newAttribute(key, otlpdata.BoolValue(b), "bool", b)
}

// maxSafeInt is the maximum integer that JSON readers represent exactly. Larger ones are shown as
// strings.
const maxSafeInt = 1<<53 - 1

func integer(key string, i int64) attribute {
	var shown any = strconv.FormatInt(i, 10)
	if -maxSafeInt <= i && i <= maxSafeInt {
		shown = json.Number(strconv.FormatInt(i, 10))
	}
	return newAttribute(key, otlpdata.IntValue(i), "int64", shown)
}

func double(key string, f float64) attribute {
	return newAttribute(key, otlpdata.DoubleValue(f), "float64", json.Number(strconv.FormatFloat(f, 'g', -1, 64)))
}

func binaryAttribute(key, b string) attribute {
	return newAttribute(key, otlpdata.EncodedValue(otlpdata.ValueBytes, b), "binary", base64.StdEncoding.EncodeToString([]byte(b)))
}

// list is an array, which the API shows as a string that holds JSON.
func list(key string, l listValue) attribute {
	var array []byte
	for _, e := range l.encoded {
		array = protowire.AppendBytes(protowire.AppendTag(array, 1, protowire.BytesType), e)
	}
	return newAttribute(key, otlpdata.EncodedValue(otlpdata.ValueArray, string(array)), "string", l.json)
}

// listValue is an array: its elements as encoded AnyValue messages, and its JSON.
type listValue struct {
	encoded [][]byte
	json    string
}

func anyText(s string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), s)
}

func anyInt(i int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), uint64(i))
}

// Attribute values in rotation: values that formats, stores and JSON often get wrong.
var (
	textValues = []string{"plain", "", "ünïcödé ☃ 漢字 🚀", `"quoted" \ / <b>&amp;'`, "line\nbreak\ttab\x01\u2028", " spaces ", "true", "0"}
	intValues  = []int64{0, 1, -1, 42, math.MaxInt32 + 1, maxSafeInt, maxSafeInt + 1, -maxSafeInt - 1, math.MaxInt64, math.MinInt64}
	floats     = []float64{0, 0.1, -2.5, 1, 1e21, 1e-7, 123456.789, math.MaxFloat64, math.SmallestNonzeroFloat64}
	binaries   = []string{"", "\x00", "\xff\xfe\xfd", "text", "\x80 not UTF-8"}
	lists      = []listValue{
		{json: `[]`},
		{[][]byte{anyText("a"), anyText("ß")}, `["a","ß"]`},
		{[][]byte{anyInt(1), anyInt(-2), anyText("three")}, `[1,-2,"three"]`},
	}
)

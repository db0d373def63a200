package storetool

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/parquet-go/parquet-go"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// parquetRow builds rows of the schema of parquetSpan: the values of its leaf columns in order,
// with repetition and definition levels
// (https://parquet.apache.org/docs/file-format/nestedencoding/). The text of the rows is valid
// until reset.
type parquetRow struct {
	row    parquet.Row
	column int
	bytes  int
	texts  []byte
	keys   []otlpdata.KeyValue
}

// reset releases the text of all rows.
func (p *parquetRow) reset() { p.texts = p.texts[:0] }

// append appends the values of a span and returns the row and its approximate size in bytes.
func (p *parquetRow) append(row parquet.Row, r *record) (parquet.Row, int) {
	s := r.span
	p.row, p.column, p.bytes = row, 0, 0
	p.text(p.hex(s.TraceID[:]))
	p.text(p.hex(s.SpanID[:]))
	if s.ParentID.IsZero() {
		p.put(parquet.NullValue(), 0, 0)
	} else {
		p.put(bytesOf(p.hex(s.ParentID[:])), 0, 1)
	}
	p.column++
	for _, text := range [...]string{r.tenant, r.resource.Service, s.Name, s.KindName(), statusName(s.StatusCode), s.StatusMessage} {
		p.text(text)
	}
	p.number(clamp(s.Start))
	p.number(clamp(s.End))
	p.number(clamp(max(s.End, s.Start) - s.Start))
	p.text(s.TraceState)
	p.number(int64(s.Flags))
	for _, text := range [...]string{r.scope.Name, r.scope.Version, r.scope.SchemaURL} {
		p.text(text)
	}
	p.attributes(r.scope.Attributes)
	p.text(r.resource.SchemaURL)
	p.attributes(r.resource.Attributes)
	p.attributes(s.Attributes)
	p.events(s.Events)
	p.links(s.Links)
	for _, n := range [...]uint32{s.DroppedAttributes, s.DroppedEvents, s.DroppedLinks} {
		p.number(int64(n))
	}
	row, p.row = p.row, nil
	return row, p.bytes
}

func (p *parquetRow) put(v parquet.Value, repetition, definition int) {
	p.row = append(p.row, v.Level(repetition, definition, p.column))
	p.bytes += 8 + len(v.ByteArray())
}

// text appends a text column.
func (p *parquetRow) text(text string) {
	p.put(bytesOf(text), 0, 0)
	p.column++
}

func (p *parquetRow) number(n int64) {
	p.row = append(p.row, parquet.Int64Value(n).Level(0, 0, p.column))
	p.bytes += 8
	p.column++
}

// attributes appends the key and value columns of a map that is not within a list.
func (p *parquetRow) attributes(list []otlpdata.KeyValue) {
	list = p.distinct(list)
	for i := range list {
		p.put(bytesOf(list[i].Key), min(i, 1), 1)
	}
	p.endColumn(len(list))
	for i := range list {
		p.put(bytesOf(p.valueText(list[i].Value)), min(i, 1), 1)
	}
	p.endColumn(len(list))
}

// endColumn ends a column, with a null if it has no values.
func (p *parquetRow) endColumn(values int) {
	if values == 0 {
		p.put(parquet.NullValue(), 0, 0)
	}
	p.column++
}

func (p *parquetRow) events(list []otlpdata.Event) {
	p.leaf(len(list), func(i int) parquet.Value { return parquet.Int64Value(clamp(list[i].Time)) })
	p.leaf(len(list), func(i int) parquet.Value { return bytesOf(list[i].Name) })
	p.nested(len(list), func(i int) []otlpdata.KeyValue { return list[i].Attributes })
	p.leaf(len(list), func(i int) parquet.Value { return parquet.Int64Value(int64(list[i].DroppedAttributes)) })
}

func (p *parquetRow) links(list []otlpdata.Link) {
	p.leaf(len(list), func(i int) parquet.Value { return bytesOf(p.hex(list[i].TraceID[:])) })
	p.leaf(len(list), func(i int) parquet.Value { return bytesOf(p.hex(list[i].SpanID[:])) })
	p.leaf(len(list), func(i int) parquet.Value { return bytesOf(list[i].TraceState) })
	p.nested(len(list), func(i int) []otlpdata.KeyValue { return list[i].Attributes })
	p.leaf(len(list), func(i int) parquet.Value { return parquet.Int64Value(int64(list[i].DroppedAttributes)) })
}

// leaf appends one column of the elements of a list.
func (p *parquetRow) leaf(n int, value func(i int) parquet.Value) {
	for i := range n {
		v := value(i)
		p.row = append(p.row, v.Level(min(i, 1), 1, p.column))
		p.bytes += 8
	}
	p.endColumn(n)
}

// nested appends the key and value columns of the maps in the elements of a list.
func (p *parquetRow) nested(n int, of func(i int) []otlpdata.KeyValue) {
	for _, value := range [...]func(kv *otlpdata.KeyValue) string{
		func(kv *otlpdata.KeyValue) string { return kv.Key },
		func(kv *otlpdata.KeyValue) string { return p.valueText(kv.Value) },
	} {
		for i := range n {
			list := p.distinct(of(i))
			for j := range list {
				repetition := 2
				if j == 0 {
					repetition = min(i, 1)
				}
				p.put(bytesOf(value(&list[j])), repetition, 2)
			}
			if len(list) == 0 {
				p.put(parquet.NullValue(), min(i, 1), 1)
			}
		}
		p.endColumn(n)
	}
}

// fewKeys is the number of keys up to which distinct compares them one by one.
const fewKeys = 32

// distinct returns the attributes with only the first value of each key, because readers of maps do
// not expect duplicate keys. The result is valid until the next call.
func (p *parquetRow) distinct(list []otlpdata.KeyValue) []otlpdata.KeyValue {
	kept := p.keys[:0]
	var seen map[string]bool
	if len(list) > fewKeys {
		seen = make(map[string]bool, len(list))
	}
	for i := range list {
		again := seen[list[i].Key]
		if seen == nil {
			_, again = otlpdata.Get(kept, list[i].Key)
		} else {
			seen[list[i].Key] = true
		}
		if !again {
			kept = append(kept, list[i])
		}
	}
	p.keys = kept
	return kept
}

// valueText returns a value as text.
func (p *parquetRow) valueText(v otlpdata.Value) string {
	if v.Kind() == otlpdata.ValueString {
		return v.Str()
	}
	from := len(p.texts)
	p.texts = v.AppendText(p.texts)
	return unsafeString(p.texts[from:])
}

func (p *parquetRow) hex(id []byte) string {
	from := len(p.texts)
	p.texts = hex.AppendEncode(p.texts, id)
	return unsafeString(p.texts[from:])
}

// unsafeString returns b as a string without copying. Appending after b does not change these
// bytes.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf returns a text value. Parquet requires valid UTF-8; invalid bytes become U+FFFD.
func bytesOf(text string) parquet.Value {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	return parquet.ByteArrayValue(unsafe.Slice(unsafe.StringData(text), len(text)))
}

// clamp limits v to the range of a signed integer, which ends in the year 2262. Later times are
// invalid.
func clamp(v uint64) int64 { return int64(min(v, math.MaxInt64)) }

func statusName(code int32) string {
	switch code {
	case otlpdata.StatusUnset:
		return "unset"
	case otlpdata.StatusOK:
		return "ok"
	case otlpdata.StatusError:
		return "error"
	}
	return strconv.Itoa(int(code))
}

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

// parquetRow makes rows of the schema of parquetSpan: the values of its leaves, one leaf after the other, with the levels at which Parquet
// notes lists within lists (https://parquet.apache.org/docs/file-format/nestedencoding/). It keeps the texts of rows until reset.
type parquetRow struct {
	row    parquet.Row
	column int
	bytes  int
	texts  []byte
	keys   []otlpdata.KeyValue
}

// reset forgets the texts of all rows.
func (p *parquetRow) reset() { p.texts = p.texts[:0] }

// append appends the values of a span, and returns about how many bytes they take.
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

// text appends a leaf.
func (p *parquetRow) text(text string) {
	p.put(bytesOf(text), 0, 0)
	p.column++
}

func (p *parquetRow) number(n int64) {
	p.row = append(p.row, parquet.Int64Value(n).Level(0, 0, p.column))
	p.bytes += 8
	p.column++
}

// attributes appends the two leaves of a map that is not in a list.
func (p *parquetRow) attributes(list []otlpdata.KeyValue) {
	list = p.distinct(list)
	for i := range list {
		p.put(bytesOf(list[i].Key), min(i, 1), 1)
	}
	p.empty(len(list))
	for i := range list {
		p.put(bytesOf(p.valueText(list[i].Value)), min(i, 1), 1)
	}
	p.empty(len(list))
}

// empty ends a leaf, which says that there is nothing if there were no values.
func (p *parquetRow) empty(values int) {
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

// leaf appends a leaf of the elements of a list.
func (p *parquetRow) leaf(n int, value func(i int) parquet.Value) {
	for i := range n {
		v := value(i)
		p.row = append(p.row, v.Level(min(i, 1), 1, p.column))
		p.bytes += 8
	}
	p.empty(n)
}

// nested appends the two leaves of the maps of the elements of a list.
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
		p.empty(n)
	}
}

// fewKeys is up to how many keys are compared one by one.
const fewKeys = 32

// distinct returns attributes of which each key has its first value: readers of maps do not expect a key twice. It is valid until the next
// call.
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

// valueText returns the text of a value.
func (p *parquetRow) valueText(v otlpdata.Value) string {
	if v.Kind() == otlpdata.ValueString {
		return v.Str()
	}
	from := len(p.texts)
	p.texts = v.AppendText(p.texts)
	return view(p.texts[from:])
}

func (p *parquetRow) hex(id []byte) string {
	from := len(p.texts)
	p.texts = hex.AppendEncode(p.texts, id)
	return view(p.texts[from:])
}

// view is a text of bytes that do not change before the text is used: what is appended behind them leaves them alone.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf returns the value of a text, which must be UTF-8 in Parquet.
func bytesOf(text string) parquet.Value {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	return parquet.ByteArrayValue(unsafe.Slice(unsafe.StringData(text), len(text)))
}

// clamp returns a number that Parquet can have. Times beyond it, of the year 2262, are garbage.
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

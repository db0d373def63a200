package rows

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Head is the fixed part of a row. Times are nanoseconds since the Unix epoch, as sent.
type Head struct {
	Shape, Resource  uint32
	TraceID          otlpdata.TraceID
	SpanID, ParentID otlpdata.SpanID // ParentID is zero for a root
	Start, End       uint64
}

// Duration returns the duration in nanoseconds, as [otlpdata.Span.Duration] defines it.
func (h *Head) Duration() uint64 {
	if h.End > h.Start {
		return h.End - h.Start
	}
	return 1
}

// AppendHead appends the head of a row to dst. The caller appends the cells.
func AppendHead(dst []byte, h *Head) []byte {
	dst = binary.AppendUvarint(dst, uint64(h.Shape))
	if h.ParentID.IsZero() {
		dst = binary.AppendUvarint(dst, uint64(h.Resource)<<1)
		dst = append(dst, h.TraceID[:]...)
		dst = append(dst, h.SpanID[:]...)
	} else {
		dst = binary.AppendUvarint(dst, uint64(h.Resource)<<1|1)
		dst = append(dst, h.TraceID[:]...)
		dst = append(dst, h.SpanID[:]...)
		dst = append(dst, h.ParentID[:]...)
	}
	dst = binary.LittleEndian.AppendUint64(dst, h.Start)
	return binary.AppendUvarint(dst, h.End-h.Start)
}

// ReadHead decodes the head of a row into h and returns the encoded cells. It does not check ids
// against tables.
func ReadHead(row []byte, h *Head) (cells []byte, err error) {
	shape, n := uvarint(row, 0)
	resource, n := uvarint(row, n)
	if n < 0 || shape >= maxID || resource>>1 >= maxID {
		return nil, corrupt("invalid row head")
	}
	h.Shape, h.Resource = uint32(shape), uint32(resource>>1)
	size := 16 + 8 + 8
	if resource&1 == 1 {
		size += 8
	}
	b := row[n:]
	if len(b) < size {
		return nil, corrupt("truncated row head")
	}
	h.TraceID = otlpdata.TraceID(b)
	h.SpanID = otlpdata.SpanID(b[16:])
	h.ParentID = otlpdata.SpanID{}
	if resource&1 == 1 {
		h.ParentID = otlpdata.SpanID(b[24:])
	}
	h.Start = binary.LittleEndian.Uint64(b[size-8:])
	length, n := uvarint(b, size)
	if n < 0 {
		return nil, corrupt("row is truncated in its end time")
	}
	h.End = h.Start + length
	return b[n:], nil
}

// Cell is the value of one column of one row. Data aliases the row.
type Cell struct {
	Word uint32 // 1 + index of a word in the dictionary; 0: the value is in Num or Data
	Num  uint64 // bool, int, or bits of a double
	Data string // string, bytes, or encoded array or map
}

// CellOf returns the cell of a value. It uses no dictionary.
func CellOf(v otlpdata.Value) Cell {
	switch v.Kind() {
	case otlpdata.ValueBool:
		if v.Bool() {
			return Cell{Num: 1}
		}
		return Cell{}
	case otlpdata.ValueInt:
		return Cell{Num: uint64(v.Int())}
	case otlpdata.ValueDouble:
		return Cell{Num: math.Float64bits(v.Double())}
	}
	return Cell{Data: v.Encoded()}
}

// AppendCell appends an encoded cell to dst. kind is the kind of the column.
func AppendCell(dst []byte, kind otlpdata.ValueKind, c Cell) []byte {
	switch kind {
	case otlpdata.ValueString:
		if c.Word > 0 {
			return binary.AppendUvarint(dst, uint64(c.Word))
		}
		return appendText(append(dst, 0), c.Data)
	case otlpdata.ValueBool:
		return append(dst, byte(c.Num))
	case otlpdata.ValueInt:
		return binary.AppendVarint(dst, int64(c.Num))
	case otlpdata.ValueDouble:
		return binary.LittleEndian.AppendUint64(dst, c.Num)
	case otlpdata.ValueEmpty:
		return dst
	}
	return appendText(dst, c.Data)
}

// ReadRow decodes a row: the head into h, and the cells, in the order of the shape's columns,
// appended to dst. It fails if the row refers to a definition that the tables do not have.
func (t *Tables) ReadRow(row []byte, h *Head, dst []Cell) ([]Cell, error) {
	b, err := ReadHead(row, h)
	if err != nil {
		return dst, err
	}
	if int(h.Shape) >= len(t.Shapes) || int(h.Resource) >= len(t.Resources) {
		return dst, corrupt("row refers to an undefined shape or resource")
	}
	if t.lost != nil && (t.Shapes[h.Shape].lost || t.lost.resources[h.Resource]) {
		return dst, corrupt("row refers to a missing definition")
	}
	return t.ReadCells(b, t.Shapes[h.Shape].Columns, dst)
}

// ReadCells decodes cells that AppendCell encoded, one for each column, and appends them to dst.
func (t *Tables) ReadCells(b []byte, columns []uint32, dst []Cell) ([]Cell, error) {
	dst, rest, err := t.ReadFirstCells(b, columns, dst)
	if err == nil && len(rest) > 0 {
		err = corrupt("trailing data after a row")
	}
	return dst, err
}

// ReadFirstCells is like ReadCells, but b may hold further cells, whose bytes are also returned.
func (t *Tables) ReadFirstCells(b []byte, columns []uint32, dst []Cell) (cells []Cell, rest []byte, err error) {
	from, pos := len(dst), 0
	dst = slices.Grow(dst, len(columns))
	cells = dst[from : from+len(columns)]
	for i, id := range columns {
		c := &cells[i]
		*c = Cell{}
		switch t.Columns[id].Kind {
		case otlpdata.ValueString:
			var word uint64
			if word, pos = uvarint(b, pos); word == 0 {
				c.Data, pos = cellText(b, pos)
			} else if word > uint64(len(t.Words[id])) || t.lost != nil && t.lost.words[[2]uint32{id, uint32(word - 1)}] {
				return dst, nil, corrupt("row refers to an undefined vocabulary entry")
			}
			c.Word = uint32(word)
		case otlpdata.ValueInt:
			var v uint64
			v, pos = uvarint(b, pos)
			c.Num = v>>1 ^ -(v & 1)
		case otlpdata.ValueBool:
			if pos++; pos <= len(b) {
				c.Num = uint64(b[pos-1])
			} else {
				pos = -1
			}
		case otlpdata.ValueDouble:
			if pos += 8; pos <= len(b) {
				c.Num = binary.LittleEndian.Uint64(b[pos-8:])
			} else {
				pos = -1
			}
		case otlpdata.ValueEmpty:
		default:
			c.Data, pos = cellText(b, pos)
		}
		if pos < 0 {
			return dst, nil, corrupt("truncated row")
		}
	}
	return dst[:from+len(columns)], b[pos:], nil
}

func cellText(b []byte, pos int) (string, int) {
	n, pos := uvarint(b, pos)
	if pos < 0 || n > uint64(len(b)-pos) {
		return "", -1
	}
	return text(b[pos : pos+int(n)]), pos + int(n)
}

// uvarint decodes a number at pos and returns the position after it, or -1 if pos is negative or
// the number is truncated.
func uvarint(b []byte, pos int) (uint64, int) {
	if pos < 0 || pos >= len(b) {
		return 0, -1
	}
	if c := b[pos]; c < 0x80 {
		return uint64(c), pos + 1
	}
	if pos <= len(b)-8 {
		if v, n := wideUvarint(binary.LittleEndian.Uint64(b[pos:])); n > 0 {
			return v, pos + n
		}
	}
	v, n := binary.Uvarint(b[pos:])
	if n <= 0 {
		return 0, -1
	}
	return v, pos + n
}

// wideUvarint decodes a number from eight little-endian bytes and returns its length in bytes, 0 if
// it is longer. It joins the groups of seven bits pairwise: a loop over the bytes of the duration
// would take most of the time of reading a head.
func wideUvarint(x uint64) (v uint64, n int) {
	const ends = 0x8080808080808080
	end := bits.TrailingZeros64(^x & ends)
	if end == 64 {
		return 0, 0
	}
	x &= (2<<end - 1) &^ ends
	x = x&0x007f007f007f007f | x&0x7f007f007f007f00>>1
	x = x&0x00003fff00003fff | x&0x3fff00003fff0000>>2
	return x&0x0fffffff | x>>32<<28, end/8 + 1
}

// Text returns the text of a cell of a string column.
func (t *Tables) Text(column uint32, c Cell) string {
	if c.Word > 0 {
		return t.Words[column][c.Word-1]
	}
	return c.Data
}

// Value returns the value of a cell of a column.
func (t *Tables) Value(column uint32, c Cell) otlpdata.Value {
	switch kind := t.Columns[column].Kind; kind {
	case otlpdata.ValueString:
		return otlpdata.StringValue(t.Text(column, c))
	case otlpdata.ValueBool:
		return otlpdata.BoolValue(c.Num != 0)
	case otlpdata.ValueInt:
		return otlpdata.IntValue(int64(c.Num))
	case otlpdata.ValueDouble:
		return otlpdata.DoubleValue(math.Float64frombits(c.Num))
	default:
		return otlpdata.EncodedValue(kind, c.Data)
	}
}

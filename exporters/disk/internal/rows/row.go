package rows

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Head is the part of a row that all spans have. Times are nanoseconds since the Unix epoch, as sent.
type Head struct {
	Shape, Resource  uint32
	TraceID          otlpdata.TraceID
	SpanID, ParentID otlpdata.SpanID // ParentID is zero for a root
	Start, End       uint64
}

// Duration returns the length in nanoseconds by the rule of [otlpdata.Span.Duration].
func (h *Head) Duration() uint64 {
	if h.End > h.Start {
		return h.End - h.Start
	}
	return 1
}

// AppendHead appends the head of a row; the cells follow.
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

// ReadHead reads the head of a row into h and returns the cells. It does not look into tables.
func ReadHead(row []byte, h *Head) (cells []byte, err error) {
	shape, n := uvarint(row, 0)
	resource, n := uvarint(row, n)
	if n < 0 || shape >= maxID || resource>>1 >= maxID {
		return nil, corrupt("the head of a row")
	}
	h.Shape, h.Resource = uint32(shape), uint32(resource>>1)
	size := 16 + 8 + 8
	if resource&1 == 1 {
		size += 8
	}
	b := row[n:]
	if len(b) < size {
		return nil, corrupt("the head of a row is cut short")
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
		return nil, corrupt("the end of a span is cut short")
	}
	h.End = h.Start + length
	return b[n:], nil
}

// Cell is the value of one column of one row. Data aliases the row.
type Cell struct {
	Word uint32 // 1 + the number of a word; 0: the value is in Num or Data
	Num  uint64 // of a bool, an int, or the bits of a double
	Data string // of a string, bytes, or an encoded array or map
}

// CellOf returns the cell of a value, which needs no dictionary.
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

// AppendCell appends a cell of a column whose values are of a kind.
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

// ReadRow reads a whole row: the head into h, the cells, in the order of the shape's columns, behind dst. It fails for rows that refer to
// what the tables do not have.
func (t *Tables) ReadRow(row []byte, h *Head, dst []Cell) ([]Cell, error) {
	b, err := ReadHead(row, h)
	if err != nil {
		return dst, err
	}
	if int(h.Shape) >= len(t.Shapes) || int(h.Resource) >= len(t.Resources) {
		return dst, corrupt("a row refers to what is not defined")
	}
	if t.lost != nil && (t.Shapes[h.Shape].lost || t.lost.resources[h.Resource]) {
		return dst, corrupt("a row refers to a definition that was lost")
	}
	return t.ReadCells(b, t.Shapes[h.Shape].Columns, dst)
}

// ReadCells reads the cells of a list of columns, as AppendCell wrote them one after the other, behind dst.
func (t *Tables) ReadCells(b []byte, columns []uint32, dst []Cell) ([]Cell, error) {
	dst, rest, err := t.NextCells(b, columns, dst)
	if err == nil && len(rest) > 0 {
		err = corrupt("a row is too long")
	}
	return dst, err
}

// NextCells is ReadCells for the first cells of more: it also returns the bytes that follow.
func (t *Tables) NextCells(b []byte, columns []uint32, dst []Cell) (cells []Cell, rest []byte, err error) {
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
				return dst, nil, corrupt("a row refers to a word that is not defined")
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
			return dst, nil, corrupt("a row is cut short")
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

// uvarint reads a number at pos and returns the position behind it, or -1. A negative pos stays negative.
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

// wideUvarint reads a number from eight bytes, the first one lowest, and returns how many it takes; 0 if it takes more. It puts the groups
// of seven bits together two by two, since a loop over the bytes of a duration is what reading a head would spend most time in.
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

// Value returns what a cell of a column stands for.
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

package rows

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Tag identifies the type of an item of a record. The numbers are part of the file format.
type Tag uint8

// The types of items.
const (
	TagRow Tag = iota
	TagColumn
	TagWord
	TagScope
	TagResource
	TagShape
	TagService
	TagPosition // see AppendPosition
)

// ErrCorrupt matches all errors about bytes that are not a valid record or do not fit the tables.
var ErrCorrupt = errors.New("invalid record")

func corrupt(what string) error { return fmt.Errorf("%w: %s", ErrCorrupt, what) }

const (
	tagBits = 3
	// maxID limits ids, and thereby the memory that a reader allocates for a damaged definition.
	maxID = 1 << 22
	// maxLost is the maximum number of missing definitions of a vocabulary.
	maxLost = 1 << 18
	// MaxHead is the maximum number of bytes of an item in addition to its payload.
	MaxHead = binary.MaxVarintLen64
)

// AppendItem appends the head of an item. The caller appends its payload of n bytes.
func AppendItem(dst []byte, tag Tag, n int) []byte {
	return binary.AppendUvarint(dst, uint64(n)<<tagBits|uint64(tag))
}

// NextItem splits the first item off a record. The payload aliases the record.
func NextItem(record []byte) (tag Tag, payload, rest []byte, err error) {
	head, n := binary.Uvarint(record)
	if n <= 0 || head>>tagBits > uint64(len(record)-n) {
		return 0, nil, nil, corrupt("truncated item")
	}
	end := n + int(head>>tagBits)
	return Tag(head & (1<<tagBits - 1)), record[n:end:end], record[end:], nil
}

// item inserts the head of an item before the payload dst[from:].
func item(dst []byte, tag Tag, from int) []byte {
	n := len(dst) - from
	var head [MaxHead]byte
	h := AppendItem(head[:0], tag, n)
	dst = append(dst, h...)
	copy(dst[from+len(h):], dst[from:from+n])
	copy(dst[from:], h)
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendID(dst []byte, id uint32) []byte { return binary.AppendUvarint(dst, uint64(id)) }

// AppendColumn appends the definition of a column.
func AppendColumn(dst []byte, id uint32, c Column) []byte {
	from := len(dst)
	dst = append(appendID(dst, id), byte(c.Place), byte(c.Kind))
	return item(append(dst, c.Key...), TagColumn, from)
}

// AppendWord appends a word of a column's dictionary.
func AppendWord(dst []byte, column, id uint32, text string) []byte {
	from := len(dst)
	dst = appendID(appendID(dst, column), id)
	return item(append(dst, text...), TagWord, from)
}

// AppendScope appends the definition of a scope. It uses only Raw and SchemaURL of s.
func AppendScope(dst []byte, id uint32, s *otlpdata.Scope) []byte {
	from := len(dst)
	dst = appendText(appendID(dst, id), s.SchemaURL)
	return item(append(dst, s.Raw...), TagScope, from)
}

// AppendResource appends the definition of a resource. It uses only Raw and SchemaURL of r.
func AppendResource(dst []byte, id uint32, tenant string, r *otlpdata.Resource) []byte {
	from := len(dst)
	dst = appendText(appendText(appendID(dst, id), tenant), r.SchemaURL)
	return item(append(dst, r.Raw...), TagResource, from)
}

// AppendPosition appends the number of rows that precede it in the log. A reader that missed
// records can tell from it how many rows they had.
func AppendPosition(dst []byte, preceding uint64) []byte {
	from := len(dst)
	return item(binary.AppendUvarint(dst, preceding), TagPosition, from)
}

// ReadPosition decodes the payload of a position.
func ReadPosition(payload []byte) (preceding uint64, err error) {
	r := reader{b: payload}
	preceding = r.uvarint()
	return preceding, r.err
}

const flagNameInRow = 1

// AppendService appends the definition of a service.
func AppendService(dst []byte, id uint32, s Service) []byte {
	from := len(dst)
	dst = appendText(appendID(dst, id), s.Tenant)
	return item(append(dst, s.Name...), TagService, from)
}

// AppendShape appends the definition of a shape. service is the id of s.Tenant and s.Service. The
// service, the scope and the columns must already be defined. A shape refers to its service by id
// to limit the length of records: service names may be long, and shapes are numerous.
func AppendShape(dst []byte, id, service uint32, s *Shape) []byte {
	from := len(dst)
	dst = appendID(appendID(dst, id), service)
	dst = appendID(dst, s.Scope)
	dst = binary.AppendVarint(dst, int64(s.Kind))
	dst = binary.AppendVarint(dst, int64(s.Status))
	flags := byte(0)
	if s.NameInRow {
		flags = flagNameInRow
	}
	dst = appendText(append(dst, flags), s.Name)
	for _, c := range s.Columns {
		dst = appendID(dst, c)
	}
	return item(dst, TagShape, from)
}

// text returns b as a string without copying. This is safe because records never change.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

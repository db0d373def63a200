package spool

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

const (
	kindItem = 1
	kindDone = 2

	headSize = 1 + 8 + 8
)

// MaxPayload is the maximum size of the payload of an item, in bytes.
const MaxPayload = wal.MaxPayload - headSize

var errKind = errors.New("unknown kind of record")

// record is a decoded record. payload aliases the input.
type record struct {
	kind byte
	// Of an item.
	since   time.Time
	weight  int64
	payload []byte
	item    doneItem // of a done record
}

// doneItem names an item by its log and its sequence number there.
type doneItem struct{ epoch, seq uint64 }

func itemHead(since time.Time, weight int64) []byte {
	head := append(make([]byte, 0, headSize), kindItem)
	head = binary.LittleEndian.AppendUint64(head, uint64(since.UnixNano()))
	return binary.LittleEndian.AppendUint64(head, uint64(weight))
}

func doneRecord(d doneItem) []byte {
	b := append(make([]byte, 0, headSize), kindDone)
	b = binary.LittleEndian.AppendUint64(b, d.epoch)
	return binary.LittleEndian.AppendUint64(b, d.seq)
}

// readRecord decodes a record. Any bytes are allowed.
func readRecord(b []byte) (record, error) {
	if len(b) < headSize {
		return record{}, errors.New("record is too short")
	}
	first, second := binary.LittleEndian.Uint64(b[1:]), binary.LittleEndian.Uint64(b[9:])
	switch b[0] {
	case kindItem:
		return record{kind: kindItem, since: time.Unix(0, int64(first)), weight: max(int64(second), 0), payload: b[headSize:]}, nil
	case kindDone:
		return record{kind: kindDone, item: doneItem{first, second}}, nil
	}
	return record{}, errKind
}

package namelist

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sort"
	"unsafe"
)

const (
	// pageBytes is the size at which a page is full.
	pageBytes = 8 << 10
	// maxKey is the maximum length of a key in bytes. Longer names are not listed.
	maxKey = 64 << 10
	// maxPage is the maximum size of a page.
	maxPage = pageBytes + maxKey + 32

	checksumBytes = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Errors about damaged lists.
var (
	errChecksum  = errors.New("checksum mismatch")
	errMalformed = errors.New("malformed list of names")
	errOrder     = errors.New("names are not sorted")
)

// pageWriter writes sorted keys to pages.
type pageWriter struct {
	pages     []byte
	directory []byte
	count     int    // number of pages
	from      int    // start of the current page
	last      []byte // the last key
}

// add adds a key, which must be above the last one. It ignores a key that equals the last one.
func (w *pageWriter) add(key []byte) {
	if len(w.pages) > 0 && bytes.Equal(key, w.last) {
		return
	}
	shared := 0
	if len(w.pages) == 0 || len(w.pages)-w.from >= pageBytes {
		w.endPage()
		w.from = len(w.pages)
		w.pages = append(w.pages, make([]byte, checksumBytes)...)
		w.last = w.last[:0]
	} else {
		shared = sharedBytes(w.last, key)
	}
	w.pages = binary.AppendUvarint(w.pages, uint64(shared))
	w.pages = binary.AppendUvarint(w.pages, uint64(len(key)-shared))
	w.pages = append(w.pages, key[shared:]...)
	w.last = append(w.last[:0], key...)
}

// endPage completes the current page.
func (w *pageWriter) endPage() {
	page := w.pages[w.from:]
	if len(page) == 0 {
		return
	}
	binary.LittleEndian.PutUint32(page, crc32.Checksum(page[checksumBytes:], castagnoli))
	_, a := binary.Uvarint(page[checksumBytes:])
	n, b := binary.Uvarint(page[checksumBytes+a:])
	first := page[checksumBytes+a+b:][:n]
	w.directory = binary.AppendUvarint(w.directory, uint64(len(page)))
	w.directory = append(binary.AppendUvarint(w.directory, n), first...)
	w.count++
}

func sharedBytes(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// page locates a page.
type page struct {
	first  string
	offset int64
	length int
}

// pages is the directory of a list. It does not change.
type pages struct {
	list   []page
	length int64  // of all pages
	memory []byte // the pages, if they are in memory
}

// readPages decodes a directory and returns the rest of b. The result shares memory with b.
func readPages(b []byte) (p pages, rest []byte, err error) {
	n, b, err := uvarint(b, uint64(len(b))/2)
	if err != nil {
		return p, nil, err
	}
	p.list = make([]page, n)
	for i := range p.list {
		at := &p.list[i]
		length, more, err1 := uvarint(b, maxPage)
		size, more, err2 := uvarint(more, uint64(min(maxKey, len(more))))
		if err := errors.Join(err1, err2); err != nil || size > uint64(len(more)) || length < checksumBytes {
			return p, nil, errors.Join(err, errMalformed)
		}
		*at = page{first: unsafe.String(unsafe.SliceData(more), int(size)), offset: p.length, length: int(length)}
		if i > 0 && p.list[i-1].first >= at.first {
			return p, nil, errOrder
		}
		p.length += int64(length)
		b = more[size:]
	}
	return p, b, nil
}

// uvarint decodes a number of at most maximum.
func uvarint(b []byte, maximum uint64) (uint64, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 || v > maximum {
		return 0, nil, errMalformed
	}
	return v, b[n:], nil
}

// Read reads length bytes from an offset in the pages of a list. The result is valid until the next
// call.
type Read func(offset int64, length int) ([]byte, error)

// each calls visit with the keys from the given one on, until it returns false. A key is valid
// during the call.
func (p *pages) each(from []byte, read Read, visit func(key []byte) bool) error {
	i := sort.Search(len(p.list), func(i int) bool { return p.list[i].first > string(from) })
	var key []byte
	for i = max(i-1, 0); i < len(p.list); i++ {
		b, err := p.read(i, read)
		if err != nil {
			return fmt.Errorf("page %d: %w", i, err)
		}
		more, err := eachKey(b, &key, func(key []byte) bool { return bytes.Compare(key, from) < 0 || visit(key) })
		if err != nil {
			return fmt.Errorf("page %d: %w", i, err)
		}
		if !more {
			return nil
		}
		from = nil
	}
	return nil
}

// read returns the keys of a page, still encoded.
func (p *pages) read(i int, read Read) ([]byte, error) {
	at := &p.list[i]
	if p.memory != nil {
		return p.memory[at.offset:][checksumBytes:at.length], nil
	}
	b, err := read(at.offset, at.length)
	if err != nil {
		return nil, err
	}
	if crc32.Checksum(b[checksumBytes:], castagnoli) != binary.LittleEndian.Uint32(b) {
		return nil, errChecksum
	}
	return b[checksumBytes:], nil
}

// eachKey decodes the keys of a page. scratch holds the current key.
func eachKey(b []byte, scratch *[]byte, visit func(key []byte) bool) (more bool, _ error) {
	key := (*scratch)[:0]
	defer func() { *scratch = key }()
	for len(b) > 0 {
		shared, rest, err := uvarint(b, uint64(len(key)))
		if err != nil {
			return false, err
		}
		n, rest, err := uvarint(rest, uint64(len(rest)))
		if err != nil || n > uint64(len(rest)) || shared+n > maxKey {
			return false, errMalformed
		}
		key = append(key[:shared], rest[:n]...)
		b = rest[n:]
		if !visit(key) {
			return false, nil
		}
	}
	return true, nil
}

// verify checks all pages, which are in b.
func (p *pages) verify(b []byte) error {
	if int64(len(b)) != p.length {
		return errMalformed
	}
	var last []byte
	i, keys := 0, 0
	for i = range p.list {
		var err error
		if e := p.eachIn(i, b, func(key []byte) bool {
			if keys > 0 && bytes.Compare(last, key) >= 0 {
				err = errOrder
			}
			keys++
			last = append(last[:0], key...)
			return err == nil
		}); e != nil || err != nil {
			return fmt.Errorf("page %d: %w", i, errors.Join(e, err))
		}
	}
	return nil
}

// eachIn visits the keys of one page, which is in b.
func (p *pages) eachIn(i int, b []byte, visit func(key []byte) bool) error {
	raw, err := p.read(i, func(offset int64, length int) ([]byte, error) { return b[offset:][:length], nil })
	if err != nil {
		return err
	}
	var key []byte
	first := true
	var wrong error
	_, err = eachKey(raw, &key, func(key []byte) bool {
		if first && string(key) != p.list[i].first {
			wrong = errMalformed
			return false
		}
		first = false
		return visit(key)
	})
	return errors.Join(err, wrong)
}

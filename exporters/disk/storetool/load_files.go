package storetool

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// maxLoadedRequest is the maximum size of one request in an exported file, so that damaged files
// take little memory. Exports have requests of about 1 MiB, or one larger span. A receiver responds
// with 413 to a request above its max_request_body_size, and the load stops.
const maxLoadedRequest = 64 << 20

// maxRound is the maximum total size of the requests that are sent together, unless a single one is
// larger.
const maxRound = 64 << 20

// requestReader reads requests with a length prefix of four bytes, big-endian.
type requestReader struct {
	in     *bufio.Reader
	offset int64 // of the next request
}

func newRequestReader(f *os.File, from int64) (*requestReader, error) {
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, err
	}
	return &requestReader{in: bufio.NewReaderSize(f, 1<<20), offset: from}, nil
}

// next returns at most n requests; none at the end of the file.
func (r *requestReader) next(n int) (list [][]byte, err error) {
	size := 0
	for len(list) < n && size < maxRound {
		var head [4]byte
		if _, err := io.ReadFull(r.in, head[:]); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the request at offset %d: %w", r.offset, err)
		}
		length := binary.BigEndian.Uint32(head[:])
		if length > maxLoadedRequest {
			return nil, fmt.Errorf("request at offset %d has %d bytes, which exceeds the maximum of %d; the file is damaged or has another format",
				r.offset, length, maxLoadedRequest)
		}
		body := make([]byte, length)
		if _, err := io.ReadFull(r.in, body); err != nil {
			return nil, fmt.Errorf("reading the request at offset %d: %w", r.offset, err)
		}
		r.offset += int64(len(head)) + int64(length)
		size += len(body)
		list = append(list, body)
	}
	return list, nil
}

// journalName is the name of the journal in the folder of an export.
const journalName = "loaded.txt"

// journal records how much of each file was acknowledged, so that an interrupted load continues
// there. Each line is an offset and a file name; the last line of each file applies. The first line
// names the receiver.
type journal struct {
	file *os.File
	sent map[string]int64
}

// openJournal reads the journal of an earlier load to the same receiver, or starts a new one.
func openJournal(path, receiver string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{file: f, sent: map[string]int64{}}
	if err := j.read(receiver); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

func (j *journal) read(receiver string) error {
	text, err := io.ReadAll(j.file)
	if err != nil {
		return err
	}
	end := strings.LastIndexByte(string(text), '\n') + 1
	if end == 0 {
		return j.begin(receiver)
	}
	if err := j.file.Truncate(int64(end)); err != nil { // a line that was not written completely
		return err
	}
	lines := strings.Split(strings.TrimSuffix(string(text[:end]), "\n"), "\n")
	if lines[0] != receiver {
		return fmt.Errorf("journal %s is of a load to %s; remove the journal to load everything into another receiver", j.file.Name(), lines[0])
	}
	for i, line := range lines[1:] {
		offset, name, _ := strings.Cut(line, " ")
		n, err := strconv.ParseInt(offset, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("journal %s: line %d is damaged; remove the journal to reload everything", j.file.Name(), i+2)
		}
		j.sent[name] = n
	}
	return nil
}

func (j *journal) begin(receiver string) error {
	if err := j.file.Truncate(0); err != nil {
		return err
	}
	_, err := j.file.WriteString(receiver + "\n")
	return err
}

// record appends that a file was acknowledged up to an offset.
func (j *journal) record(name string, offset int64) error {
	_, err := fmt.Fprintf(j.file, "%d %s\n", offset, name)
	return err
}

func (j *journal) close() { j.file.Close() } //nolint:errcheck // each line was written

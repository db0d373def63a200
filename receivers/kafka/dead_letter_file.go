package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// letterFolder is the folder of dead letters, below the receiver's folder.
const letterFolder = "dead_letters"

// letterFiles writes each dead letter to a file TOPIC-PARTITION-OFFSET.record: a line of JSON that
// describes the record, followed by its value. If a record is consumed again, its file is replaced.
type letterFiles struct {
	fs  vfs.FS
	dir string
	max int64
	now func() time.Time

	mu sync.Mutex // one writer at a time, which the limit requires, too
}

func newLetterFiles(set pipeline.Settings, max int64) *letterFiles {
	return &letterFiles{fs: set.Env.FS, dir: filepath.Join(set.Dir, letterFolder), max: max, now: set.Env.Now}
}

// description is the first line of a file. Keys and values of headers are in base64, because they
// may be binary.
type description struct {
	Topic     string       `json:"topic"`
	Partition int32        `json:"partition"`
	Offset    int64        `json:"offset"`
	Timestamp *time.Time   `json:"timestamp,omitempty"`
	Written   time.Time    `json:"written"`
	Reason    string       `json:"reason"`
	Error     string       `json:"error"`
	Key       []byte       `json:"key,omitempty"`
	Headers   []headerLine `json:"headers,omitempty"`
}

type headerLine struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

func (f *letterFiles) write(_ context.Context, l letter) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, err := f.encode(l)
	if err != nil {
		return "", err
	}
	if err := f.fs.MkdirAll(f.dir); err != nil {
		return "", err
	}
	name := fmt.Sprintf("%s-%d-%020d.record", l.record.Topic, l.record.Partition, l.record.Offset)
	used, err := f.usedBesides(name)
	if err != nil {
		return "", err
	}
	if used+int64(len(data)) > f.max {
		return "", fmt.Errorf("folder %s is full: %d bytes used, dead_letter::max_size is %d; remove files, increase the limit "+
			"or set dead_letter::topic", f.dir, used, f.max)
	}
	path := filepath.Join(f.dir, name)
	return path, vfs.WriteFileAtomic(f.fs, path, data)
}

// usedBesides returns the size of all files except one, which will be replaced. It rereads the
// folder each time, because dead letters are rare and files may have been removed.
func (f *letterFiles) usedBesides(name string) (sum int64, err error) {
	entries, err := f.fs.ReadDir(f.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	for _, e := range entries {
		if e.Name != name {
			sum += e.Size
		}
	}
	return sum, nil
}

func (f *letterFiles) encode(l letter) ([]byte, error) {
	text := l.err.Error()
	d := description{Topic: l.record.Topic, Partition: l.record.Partition, Offset: l.record.Offset, Written: f.now().UTC(),
		Reason: l.reason, Error: text[:min(len(text), maxErrorText)], Key: l.record.Key}
	if !l.record.Timestamp.IsZero() {
		t := l.record.Timestamp.UTC()
		d.Timestamp = &t
	}
	for _, h := range l.record.Headers {
		d.Headers = append(d.Headers, headerLine{h.Key, h.Value})
	}
	line, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	return append(append(line, '\n'), l.record.Value...), nil
}

package delivery

import (
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// DeadLetters writes batches that a destination refused permanently after they were acknowledged to
// files in a folder. Each file is an encoded ExportTraceServiceRequest, which can be resent to an
// OTLP receiver:
//
//	curl --data-binary @FILE -H 'Content-Type: application/x-protobuf' localhost:4318/v1/traces
//
// A file of log records has the extension .logs.otlp and is an ExportLogsServiceRequest, for the
// path /v1/logs. The name of a file ends with the exporter and, unless it is the default tenant,
// the tenant, which must be sent with the file.
//
// It is safe for concurrent use. A nil *DeadLetters writes nothing.
type DeadLetters struct {
	dir string
	max int64
	now func() time.Time

	mu      sync.Mutex
	scanned time.Time // when used was counted; zero: not yet
	used    int64     // bytes in dir
	number  int
}

// NewDeadLetters returns DeadLetters that keep at most maxBytes in a folder. It returns nil if dir
// is "".
func NewDeadLetters(dir string, maxBytes int64, now func() time.Time) *DeadLetters {
	if dir == "" {
		return nil
	}
	return &DeadLetters{dir: dir, max: maxBytes, now: now}
}

// write writes b and returns the path of the file. If the folder is full or cannot be written to,
// it logs a warning and returns "".
func (d *DeadLetters) write(component string, b *otlpdata.Batch, log *zap.Logger) string {
	if d == nil {
		return ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	path, err := d.writeFile(component, b)
	if err != nil {
		log.Warn("cannot write dead letter", zap.Error(err))
		return ""
	}
	return path
}

func (d *DeadLetters) writeFile(component string, b *otlpdata.Batch) (string, error) {
	if err := d.scan(int64(b.Size())); err != nil {
		return "", err
	}
	if int64(b.Size()) > d.max-d.used {
		return "", fmt.Errorf("dead-letter folder %s is full: %d bytes used, service.dead_letter_size is %d", d.dir, d.used, d.max)
	}
	chunks, err := b.Chunks()
	if err != nil {
		return "", err
	}
	temp, err := writeTemp(d.dir, chunks)
	if err != nil {
		return "", err
	}
	d.number++
	name := fmt.Sprintf("%s-%06d-%s", d.now().UTC().Format("20060102T150405.000000000Z"), d.number, url.PathEscape(component))
	if tenant := b.Meta().Tenant; tenant != "" {
		name += "-tenant-" + url.PathEscape(tenant)
	}
	if b.Meta().Signal == otlpdata.SignalLogs {
		name += ".logs"
	}
	path := filepath.Join(d.dir, name+".otlp")
	if err := os.Rename(temp, path); err != nil {
		return "", errors.Join(err, os.Remove(temp))
	}
	d.used += int64(b.Size())
	return path, d.sync()
}

// writeTemp writes and syncs a temporary file.
func writeTemp(dir string, chunks iter.Seq[[]byte]) (name string, err error) {
	f, err := os.CreateTemp(dir, ".tmp-*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name()) //nolint:errcheck // the first error counts
		}
	}()
	for c := range chunks {
		if _, err := f.Write(c); err != nil {
			f.Close() //nolint:errcheck // the first error counts
			return "", err
		}
	}
	if err := f.Sync(); err != nil {
		f.Close() //nolint:errcheck // the first error counts
		return "", err
	}
	return f.Name(), f.Close()
}

// sync makes the names of files in the folder survive a crash of the machine.
func (d *DeadLetters) sync() error {
	f, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// rescanInterval is the minimum time between two scans of a full folder, from which files may have
// been removed.
const rescanInterval = time.Minute

// scan creates the folder and counts the bytes in it, unless the number is known and size more
// bytes fit. If they do not fit, it recounts at most every rescanInterval.
func (d *DeadLetters) scan(size int64) error {
	full := size > d.max-d.used
	if !d.scanned.IsZero() && (!full || d.now().Sub(d.scanned) < rescanInterval) {
		return nil
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return fmt.Errorf("service.dead_letter_dir: %w", err)
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return fmt.Errorf("service.dead_letter_dir: %w", err)
	}
	d.used = 0
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			d.used += info.Size()
		}
	}
	d.scanned = d.now()
	return nil
}

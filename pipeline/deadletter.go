package pipeline

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// deadLetters keeps batches that a destination refused for good after they had been acknowledged, as files below
// service.dead_letter_dir: each is one encoded ExportTraceServiceRequest, ready to be posted to an OTLP receiver again:
//
//	curl --data-binary @FILE -H 'Content-Type: application/x-protobuf' localhost:4318/v1/traces
//
// The name of a file ends with the exporter and, unless it is the default one, the tenant, which the receiver must be told.
//
// A nil *deadLetters keeps nothing.
type deadLetters struct {
	dir string
	max int64
	now func() time.Time

	mu      sync.Mutex
	scanned time.Time // when used was counted; zero: never
	used    int64     // bytes below dir
	number  int
}

func newDeadLetters(c *serviceConfig, now func() time.Time) *deadLetters {
	if c.DeadLetterDir == "" {
		return nil
	}
	return &deadLetters{dir: c.DeadLetterDir, max: int64(c.DeadLetterSize), now: now}
}

// keep writes b and returns the file's path, or "" when it is not kept: the folder is full, or cannot be written to, which is logged.
func (d *deadLetters) keep(component string, b *otlpdata.Batch, log *zap.Logger) string {
	if d == nil {
		return ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	path, err := d.write(component, b)
	if err != nil {
		log.Warn("no dead letter was kept", zap.Error(err))
		return ""
	}
	return path
}

func (d *deadLetters) write(component string, b *otlpdata.Batch) (string, error) {
	if err := d.scan(int64(b.Size())); err != nil {
		return "", err
	}
	if int64(b.Size()) > d.max-d.used {
		return "", fmt.Errorf("%s holds %d bytes, service.dead_letter_size is %d", d.dir, d.used, d.max)
	}
	segments, err := b.Segments()
	if err != nil {
		return "", err
	}
	d.number++
	name := fmt.Sprintf("%s-%06d-%s", d.now().UTC().Format("20060102T150405.000000000Z"), d.number, url.PathEscape(component))
	if tenant := b.Meta().Tenant; tenant != "" {
		name += "-tenant-" + url.PathEscape(tenant)
	}
	f, err := os.CreateTemp(d.dir, ".tmp-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it was renamed, unless something failed
	for _, s := range segments {
		if _, err := f.Write(s); err != nil {
			f.Close() //nolint:errcheck // the first error counts
			return "", err
		}
	}
	if err := f.Sync(); err != nil {
		f.Close() //nolint:errcheck // the first error counts
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	path := filepath.Join(d.dir, name+".otlp")
	if err := os.Rename(f.Name(), path); err != nil {
		return "", err
	}
	d.used += int64(b.Size())
	return path, d.sync()
}

// sync makes the names of files in the folder survive a crash of the machine, as Sync does with their contents.
func (d *deadLetters) sync() error {
	f, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// rescanAfter is how often a full folder is looked at again, from which somebody may have taken files.
const rescanAfter = time.Minute

// scan makes the folder and sums up what is in it, unless that is known and leaves room for size bytes.
func (d *deadLetters) scan(size int64) error {
	full := size > d.max-d.used
	if !d.scanned.IsZero() && (!full || d.now().Sub(d.scanned) < rescanAfter) {
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

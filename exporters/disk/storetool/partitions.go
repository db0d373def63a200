package storetool

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"time"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// Limits of an export.
const (
	// maxOpenFiles is the maximum number of open partitions. To open another one, the least
	// recently used one is closed; if more spans follow for it, it gets another file.
	maxOpenFiles = 4
	// maxFileSpans is the maximum number of spans in a file.
	maxFileSpans = 4_000_000
	// writeBuffer is the size of the buffer in front of each file, in bytes.
	writeBuffer = 256 << 10
)

// encoder writes spans in one format to one file.
type encoder interface {
	add(r *record) error
	// close writes buffered spans and the end of the file.
	close() error
}

// format describes a file format.
type format struct {
	suffix string
	// perTenant: the format cannot store the tenant; each tenant gets its own folder.
	perTenant bool
	open      func(out *bufio.Writer) encoder
}

// partition identifies the spans of one folder.
type partition struct {
	tenant string
	hour   int64 // of the start time, since 1970
}

// folder returns the path of a partition in the Hive style, key=value.
func (p partition) folder() string {
	t := time.Unix(p.hour*3600, 0).UTC()
	name := fmt.Sprintf("date=%s/hour=%02d", t.Format(time.DateOnly), t.Hour())
	if p.tenant != "" {
		name = "tenant=" + url.PathEscape(p.tenant) + "/" + name
	}
	return name
}

// partitions writes spans to files in one folder for each hour of their start times.
type partitions struct {
	fs     vfs.FS
	dir    string
	format format
	open   map[partition]*outFile
	files  map[partition]int // number of files so far
	clock  int               // counts spans, to find the least recently used file

	Files, Spans int
	Bytes        int64
}

func newPartitions(fsys vfs.FS, dir string, f format) (*partitions, error) {
	entries, err := fsys.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the export folder: %w", err)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("export folder %s is not empty; name another folder or empty it", dir)
	}
	return &partitions{fs: fsys, dir: dir, format: f, open: map[partition]*outFile{}, files: map[partition]int{}}, nil
}

// add writes a span to the file of its partition.
func (p *partitions) add(r *record) error {
	key := partition{hour: int64(r.span.Start / uint64(time.Hour))}
	if p.format.perTenant {
		key.tenant = r.tenant
	}
	f := p.open[key]
	if f == nil {
		var err error
		if f, err = p.begin(key); err != nil {
			return err
		}
	}
	p.clock++
	f.used = p.clock
	if err := f.enc.add(r); err != nil {
		return fmt.Errorf("export: write %s: %w", f.name, err)
	}
	p.Spans++
	if f.spans++; f.spans >= maxFileSpans {
		return p.end(key)
	}
	return nil
}

// begin opens a file for a partition. If too many are open, it closes the least recently used one.
func (p *partitions) begin(key partition) (*outFile, error) {
	if len(p.open) >= maxOpenFiles {
		var oldest partition
		used := p.clock + 1
		for k, f := range p.open {
			if f.used < used {
				oldest, used = k, f.used
			}
		}
		if err := p.end(oldest); err != nil {
			return nil, err
		}
	}
	folder := path.Join(p.dir, key.folder())
	if err := p.fs.MkdirAll(folder); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	f := &outFile{fs: p.fs, name: path.Join(folder, fmt.Sprintf("spans-%04d%s", p.files[key], p.format.suffix))}
	var err error
	if f.file, err = p.fs.Create(f.name + vfs.TempSuffix); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	f.enc = p.format.open(bufio.NewWriterSize(f, writeBuffer))
	p.files[key]++
	p.open[key] = f
	return f, nil
}

// end completes the current file of a partition.
func (p *partitions) end(key partition) error {
	f := p.open[key]
	delete(p.open, key)
	if err := f.complete(); err != nil {
		return fmt.Errorf("export: write %s: %w", f.name, err)
	}
	p.Files++
	p.Bytes += f.size
	return nil
}

// close completes all files.
func (p *partitions) close() error {
	for key := range p.open {
		if err := p.end(key); err != nil {
			return err
		}
	}
	return nil
}

// abandon removes incomplete files.
func (p *partitions) abandon() {
	for _, f := range p.open {
		f.file.Close()                       // removed in the next line
		p.fs.Remove(f.name + vfs.TempSuffix) //nolint:errcheck // a leftover file has the temporary suffix
	}
	clear(p.open)
}

// outFile is a file that has a temporary name until it is complete.
type outFile struct {
	fs    vfs.FS
	name  string
	file  vfs.File
	enc   encoder
	size  int64
	spans int
	used  int // value of partitions.clock at the last write
}

// Write implements io.Writer.
func (f *outFile) Write(b []byte) (int, error) {
	n, err := f.file.WriteAt(b, f.size)
	f.size += int64(n)
	return n, err
}

// complete closes the file and gives it its final name. After an error the file is removed.
func (f *outFile) complete() error {
	err := f.enc.close()
	if err == nil {
		err = f.file.Sync()
	}
	err = errors.Join(err, f.file.Close())
	if err == nil {
		err = f.fs.Rename(f.name+vfs.TempSuffix, f.name)
	}
	if err != nil {
		return errors.Join(err, f.fs.Remove(f.name+vfs.TempSuffix))
	}
	return f.fs.SyncDir(path.Dir(f.name))
}

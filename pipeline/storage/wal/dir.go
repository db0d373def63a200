package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// maxZeros is the maximum number of bytes per write when a file is filled with zeros.
const maxZeros = 256 << 10

// Dir is a directory of logs and spare files. No other process may write in it; the owner holds a
// lock for that. Its methods may be called concurrently. Replay, Remove, Recycle and Quarantine are
// for logs that are closed or were found at start.
type Dir struct {
	fs   vfs.FS
	path string
	opts Options
	zero []byte

	mu    sync.Mutex        // held while names change
	logs  map[uint64]listed // the list of logs; guarded by mu
	stale bool              // the list on disk is not that in logs; guarded by mu
}

// OpenDir creates the directory if it is missing, and removes excess spare files.
func OpenDir(fsys vfs.FS, dir string, o Options) (*Dir, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("create log directory: %w", err)
	}
	d := &Dir{fs: fsys, path: dir, opts: o, zero: make([]byte, min(o.Step, maxZeros))}
	names, err := d.list()
	if err != nil {
		return nil, err
	}
	for _, n := range names.spares[min(o.Spares, len(names.spares)):] {
		if err := fsys.Remove(d.file(spareName(n))); err != nil {
			return nil, fmt.Errorf("remove preallocated log file: %w", err)
		}
	}
	d.loadList(&names)
	return d, nil
}

// loadList keeps the list's entries for existing logs. See Missing for the others.
func (d *Dir) loadList(names *listing) {
	d.logs, _ = d.readList() // Missing returns the error
	maps.DeleteFunc(d.logs, func(epoch uint64, _ listed) bool { return len(names.of(epoch)) == 0 })
	if d.logs == nil {
		d.logs = make(map[uint64]listed)
	}
}

// Epochs lists the logs in the directory, lowest epoch first.
func (d *Dir) Epochs() ([]uint64, error) {
	names, err := d.list()
	if err != nil {
		return nil, err
	}
	var epochs []uint64
	for _, p := range names.parts {
		epochs = append(epochs, p.epoch)
	}
	return slices.Compact(epochs), nil
}

// Size returns the bytes of all files in the directory, spares included.
func (d *Dir) Size() (int64, error) {
	names, err := d.list()
	return names.bytes, err
}

// Remove deletes a log whose content is stored elsewhere. The deletion is durable on return.
func (d *Dir) Remove(epoch uint64) error {
	return d.dispose(epoch, "remove", func(p partName, _ *listing) error { return d.fs.Remove(d.file(p.String())) })
}

// Recycle is like Remove, but keeps the file for a later log if there are fewer than Options.Spares
// and it never failed.
func (d *Dir) Recycle(epoch uint64) error {
	return d.dispose(epoch, "recycle", func(p partName, names *listing) error {
		failed := len(names.of(epoch)) > 1
		if failed || p.size > d.opts.Size+d.opts.Step || len(names.spares) >= d.opts.Spares {
			return d.fs.Remove(d.file(p.String()))
		}
		return d.fs.Rename(d.file(p.String()), d.file(spareName(names.freeSpare())))
	})
}

// DropSpares deletes the spare files to free their space.
func (d *Dir) DropSpares() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	names, err := d.list()
	if err != nil {
		return err
	}
	for _, n := range names.spares {
		if err := d.fs.Remove(d.file(spareName(n))); err != nil {
			return fmt.Errorf("remove preallocated log file: %w", err)
		}
	}
	if err := d.fs.SyncDir(d.path); err != nil {
		return fmt.Errorf("remove preallocated log files: %w", err)
	}
	return nil
}

// Quarantine moves the files of a damaged log to another directory, which is created if missing.
func (d *Dir) Quarantine(epoch uint64, to string) error {
	if err := d.fs.MkdirAll(to); err != nil {
		return fmt.Errorf("quarantine log %016x: %w", epoch, err)
	}
	return d.dispose(epoch, "quarantine", func(p partName, _ *listing) error {
		if err := d.fs.Rename(d.file(p.String()), path.Join(to, p.String())); err != nil {
			return err
		}
		return d.fs.SyncDir(to)
	})
}

// dispose calls do for all parts of a log, last one first, so that a crash leaves the beginning of
// the log.
func (d *Dir) dispose(epoch uint64, what string, do func(partName, *listing) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	names, err := d.list()
	if err != nil {
		return err
	}
	if err := d.unlist(epoch); err != nil {
		return fmt.Errorf("%s log %016x: remove the list of logs: %w", what, epoch, err)
	}
	for _, p := range slices.Backward(names.of(epoch)) {
		if err := do(p, &names); err != nil {
			return fmt.Errorf("%s log %016x: %w", what, epoch, err)
		}
	}
	if err := d.fs.SyncDir(d.path); err != nil {
		return fmt.Errorf("%s log %016x: %w", what, epoch, err)
	}
	if d.stale { // the disk was full; it may have space now
		d.saveList()
	}
	return nil
}

// newPart creates the n-th part file of a log, from a spare file if there is one. On return, its
// name is durable and the log is in the list. A new file is preallocated with zeros (Options.Step
// bytes) and synced. If the directory was deleted but not its parent, it is recreated.
func (d *Dir) newPart(epoch uint64, n int) (*part, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	names, err := d.list()
	if errors.Is(err, fs.ErrNotExist) {
		err = d.fs.Mkdir(d.path)
	}
	if err != nil {
		return nil, err
	}
	if n >= maxParts {
		return nil, fmt.Errorf("log %016x already has %d parts", epoch, n)
	}
	name := d.file(partName{epoch: epoch, n: n}.String())
	if old := names.of(epoch); len(old) > 0 && old[len(old)-1].n >= n {
		return nil, fmt.Errorf("create log %s: %w", name, fs.ErrExist)
	}
	p := d.reuseSpare(names.spares, name)
	reused := p != nil
	if !reused {
		if p, err = d.freshPart(name); err != nil {
			return nil, err
		}
	}
	if err := d.fs.SyncDir(d.path); err != nil {
		return nil, errors.Join(fmt.Errorf("create log: %w", err), d.discard(p))
	}
	d.enlist(epoch, reused)
	return p, nil
}

// reuseSpare returns nil if no spare can be used. A spare that fails is removed.
func (d *Dir) reuseSpare(spares []int, name string) *part {
	for _, n := range spares {
		spare := d.file(spareName(n))
		if err := d.fs.Rename(spare, name); err != nil {
			d.fs.Remove(spare) // if that fails, the next attempt fails too, without other consequences
			continue
		}
		file, err := d.fs.OpenWrite(name)
		if err != nil {
			d.fs.Remove(name)
			continue
		}
		p := &part{file: file, opts: &d.opts, zero: d.zero}
		if p.size, err = file.Size(); err == nil {
			err = p.reserve(0)
		}
		if err == nil {
			return p
		}
		d.discard(p)
	}
	return nil
}

func (d *Dir) freshPart(name string) (*part, error) {
	file, err := d.fs.Create(name)
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	p := &part{file: file, opts: &d.opts, zero: d.zero}
	if err := p.fill(groupUnit); err != nil {
		return nil, errors.Join(err, d.discard(p))
	}
	return p, nil
}

// discard removes a part that holds nothing acknowledged.
func (d *Dir) discard(p *part) error { return errors.Join(p.close(), d.fs.Remove(p.file.Name())) }

func (d *Dir) file(name string) string { return path.Join(d.path, name) }

func (d *Dir) list() (listing, error) {
	entries, err := d.fs.ReadDir(d.path)
	if err != nil {
		return listing{}, fmt.Errorf("list logs: %w", err)
	}
	var names listing
	for _, e := range entries {
		if p, ok := parsePartName(e.Name); ok && !e.IsDir {
			p.size = e.Size
			names.parts = append(names.parts, p)
		} else if n, ok := parseSpareName(e.Name); ok && !e.IsDir {
			names.spares = append(names.spares, n)
		} else {
			continue
		}
		names.bytes += e.Size
	}
	return names, nil
}

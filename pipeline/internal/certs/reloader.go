package certs

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

// maxFileSize is in bytes. The CA bundle of a typical system is a quarter of this size.
const maxFileSize = 1 << 20

// ReloadOptions configures when files are reread.
type ReloadOptions struct {
	// Interval is the minimum time between two checks of the files. 0 disables reloading.
	Interval time.Duration
	Now      func() time.Time
	// Report is called with an error if new files are invalid, once per distinct error, and with
	// nil when they are valid again.
	Report func(err error)
}

// NewReloadOptions returns options that log the result of reloading. what names the contents of the
// files, in the plural.
func NewReloadOptions(log *zap.Logger, now func() time.Time, what string, interval time.Duration) ReloadOptions {
	return ReloadOptions{Interval: interval, Now: now, Report: func(err error) {
		if err != nil {
			log.Warn("cannot load new "+what+"; using the previous ones", zap.Error(err))
			return
		}
		log.Info("loaded new " + what)
	}}
}

// Reloader holds a value parsed from files and reparses it when their contents change. It is safe
// for concurrent use after Load.
type Reloader[T any] struct {
	files []string
	opts  ReloadOptions
	parse func(contents [][]byte) (T, error)

	current atomic.Pointer[T]

	mu      sync.Mutex // held while the files are checked
	checked time.Time
	loaded  [][]byte // contents from which current was parsed
	failure string   // last reported error
}

// NewReloader returns a reloader of files. parse receives their contents in the order of the names,
// nil for the name "", and may retain them. Its errors should name the file.
func NewReloader[T any](files []string, o ReloadOptions, parse func(contents [][]byte) (T, error)) *Reloader[T] {
	return &Reloader[T]{files: files, opts: o, parse: parse}
}

// Load reads the files for the first time. It must succeed before Get is called. The error names
// the file.
func (r *Reloader[T]) Load() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checked = r.opts.Now()
	return r.reload()
}

// Get returns the current value. It reads the files first if Interval has passed.
func (r *Reloader[T]) Get() T {
	// If another goroutine is reading the files, use the previous value, so that a slow disk delays
	// only one caller.
	if r.opts.Interval > 0 && r.mu.TryLock() {
		defer r.mu.Unlock()
		r.refresh()
	}
	return *r.current.Load()
}

// refresh reads the files if Interval has passed. The caller holds r.mu.
func (r *Reloader[T]) refresh() {
	now := r.opts.Now()
	if now.Sub(r.checked) < r.opts.Interval {
		return
	}
	r.checked = now
	err := r.reload()
	switch {
	case err == nil && r.failure != "":
		r.failure = ""
		r.opts.Report(nil)
	case err != nil && r.failure != err.Error():
		r.failure = err.Error()
		r.opts.Report(err)
	}
}

// reload reads the files and, if they have changed and are valid, replaces the current value. The
// caller holds r.mu.
func (r *Reloader[T]) reload() error {
	contents := make([][]byte, len(r.files))
	var errs []error
	for i, name := range r.files {
		var err error
		if contents[i], err = readFile(name); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if r.current.Load() != nil && slices.EqualFunc(contents, r.loaded, bytes.Equal) {
		return nil
	}
	v, err := r.parse(contents)
	if err != nil {
		return err
	}
	r.loaded = contents
	r.current.Store(&v)
	return nil
}

// readFile reads a file, or nothing for the name "". The error names the file.
func readFile(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	return pipeline.ReadFile(context.Background(), name, maxFileSize)
}

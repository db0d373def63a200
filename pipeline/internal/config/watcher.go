package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"
)

// Watcher remembers the files of a configuration and detects changes. It compares contents at
// intervals, which also works for network file systems and for symbolic links that orchestrators
// replace.
type Watcher struct {
	readFile func(string) ([]byte, error)

	mu     sync.Mutex
	sums   map[string][]byte // by file that was read
	reread bool              // all files were read at least once
}

// NewWatcher returns a Watcher that reads files with readFile.
func NewWatcher(readFile func(string) ([]byte, error)) *Watcher {
	return &Watcher{readFile: readFile, sums: map[string][]byte{}}
}

// ReadFile reads a file and remembers it.
func (w *Watcher) ReadFile(name string) ([]byte, error) {
	w.mu.Lock()
	reread := w.reread
	w.mu.Unlock()
	b, err := w.content(name, reread)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sums[name] = checksum(b, err)
	return b, err
}

// content reads a file. It refuses to reread a pipe, which could block forever.
func (w *Watcher) content(name string, reread bool) ([]byte, error) {
	if info, err := os.Stat(name); reread && err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s cannot be reread: not a regular file", name)
	}
	return w.readFile(name)
}

// checksum identifies the content of a file, or the error of reading it.
func checksum(b []byte, err error) []byte {
	if err != nil {
		return []byte(err.Error())
	}
	s := sha256.Sum256(b)
	return s[:]
}

// Reset forgets all files. Call it before they are reread.
func (w *Watcher) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.sums)
	w.reread = true
}

// Watch checks the files for changes until end is called, if service.watch is set. The returned
// channel is closed when a file has changed.
func (w *Watcher) Watch(s *Service) (changed <-chan struct{}, end func()) {
	if !s.Watch {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	found, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if w.awaitChange(ctx, s.WatchInterval.Std()) {
			close(found)
		}
	}()
	return found, func() {
		cancel()
		<-done
	}
}

// awaitChange returns true when the files differ from the loaded contents and have not changed for
// one interval, so that half-written files are not loaded.
func (w *Watcher) awaitChange(ctx context.Context, interval time.Duration) bool {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var last map[string][]byte
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
		loaded, now := w.checksums()
		if !maps.EqualFunc(now, loaded, bytes.Equal) && maps.EqualFunc(now, last, bytes.Equal) {
			return true
		}
		last = now
	}
}

// checksums returns the checksums of the files when they were read, and now.
func (w *Watcher) checksums() (loaded, now map[string][]byte) {
	w.mu.Lock()
	loaded = maps.Clone(w.sums)
	w.mu.Unlock()
	now = make(map[string][]byte, len(loaded))
	for name := range loaded {
		now[name] = checksum(w.content(name, true))
	}
	return loaded, now
}

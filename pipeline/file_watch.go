package pipeline

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

// fileWatch remembers the files that a configuration was read from, and finds out when one has changed. It compares contents, at intervals: that
// also works for files that are exchanged by links, as orchestrators do, and on network file systems.
type fileWatch struct {
	readFile func(string) ([]byte, error)

	mu    sync.Mutex
	sums  map[string][]byte // of what was read
	again bool              // everything has been read once
}

func newFileWatch(readFile func(string) ([]byte, error)) *fileWatch {
	if readFile == nil {
		readFile = os.ReadFile
	}
	return &fileWatch{readFile: readFile, sums: map[string][]byte{}}
}

// read reads a file and remembers it.
func (w *fileWatch) read(name string) ([]byte, error) {
	w.mu.Lock()
	again := w.again
	w.mu.Unlock()
	b, err := w.content(name, again)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sums[name] = sum(b, err)
	return b, err
}

// content reads a file. A pipe can be read once: a second time nothing may ever come out of it.
func (w *fileWatch) content(name string, again bool) ([]byte, error) {
	if info, err := os.Stat(name); again && err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file that can be read again", name)
	}
	return w.readFile(name)
}

// sum stands for the content of a file; one that cannot be read has its error for content.
func sum(b []byte, err error) []byte {
	if err != nil {
		return []byte(err.Error())
	}
	s := sha256.Sum256(b)
	return s[:]
}

// forget forgets all files: they are about to be read again.
func (w *fileWatch) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.sums)
	w.again = true
}

// watch looks for changes, if the configuration in force asks for that, until end is called. The channel is closed when there is one.
func (w *fileWatch) watch(a *App) (changed <-chan struct{}, end func()) {
	config, _ := a.current()
	if !config.service.Watch {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	found, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if w.await(ctx, config.service.WatchInterval.Std()) {
			close(found)
		}
	}()
	return found, func() {
		cancel()
		<-done
	}
}

// await returns true when the files differ from what was read and were the same for an interval: one that is being written is left alone.
func (w *fileWatch) await(ctx context.Context, interval time.Duration) bool {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var last map[string][]byte
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
		loaded, now := w.look()
		if !maps.EqualFunc(now, loaded, bytes.Equal) && maps.EqualFunc(now, last, bytes.Equal) {
			return true
		}
		last = now
	}
}

// look returns what was read and what is there.
func (w *fileWatch) look() (loaded, now map[string][]byte) {
	w.mu.Lock()
	loaded = maps.Clone(w.sums)
	w.mu.Unlock()
	now = make(map[string][]byte, len(loaded))
	for name := range loaded {
		now[name] = sum(w.content(name, true))
	}
	return loaded, now
}

package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
)

// uiReload is the maximum age of the index page before its files are reread.
const uiReload = 10 * time.Second

// maxPageBytes is the maximum size of the index page, and of the settings.
const maxPageBytes = 4 << 20

// jaegerUI serves a build of the Jaeger UI.
type jaegerUI struct {
	base       string
	configFile string
	archive    bool
	hasMetrics func(context.Context) bool // asks the store
	version    httpapi.Version
	logger     *zap.Logger
	now        func() time.Time
	root       *os.Root
	files      http.Handler

	mu   sync.Mutex // guards page and read
	page builtPage
	read time.Time
}

// builtPage is the index page for a store with metrics and for one without.
type builtPage struct{ metrics, plain []byte }

// open reads the index page for the first time.
func (u *jaegerUI) open(root *os.Root) (err error) {
	u.root, u.files = root, http.FileServerFS(onlyFiles{root.FS()})
	u.page, err = u.build()
	u.read = u.now()
	return err
}

// ServeHTTP serves the files below static/, and the index page for all other paths.
func (u *jaegerUI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, u.base+"/static/") {
		http.StripPrefix(u.base, http.HandlerFunc(u.static)).ServeHTTP(w, r)
		return
	}
	u.index(w, r)
}

// static serves the files of the UI below static/. Symbolic links out of the folder are not
// followed.
func (u *jaegerUI) static(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || path.Clean(r.URL.Path) != r.URL.Path {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=3600")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	u.files.ServeHTTP(w, r)
}

// index serves the index page for all paths that are not routes, because the UI selects the page in
// the browser.
func (u *jaegerUI) index(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.NotFound(w, r)
		return
	}
	current := u.current()
	page := current.plain
	if u.hasMetrics(r.Context()) {
		page = current.metrics
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(page)
}

// current returns the index page. If its files changed but are invalid, it logs a warning and
// returns the previous page.
func (u *jaegerUI) current() builtPage {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	if now.Sub(u.read) < uiReload {
		return u.page
	}
	u.read = now
	page, err := u.build()
	if err != nil {
		u.logger.Warn("cannot reload the web UI; serving the previous version", zap.Error(err))
		return u.page
	}
	u.page = page
	return page
}

// build reads the files and returns the index page.
func (u *jaegerUI) build() (p builtPage, err error) {
	index, err := u.root.Open("index.html")
	if err != nil {
		return p, fmt.Errorf("cannot read the UI's index page: %w", err)
	}
	page, err := readBounded(index)
	if err != nil {
		return p, fmt.Errorf("cannot read the UI's index page: %w", err)
	}
	settings := uiSettings{}
	if name := u.configFile; name != "" {
		if settings, err = readUISettings(name); err != nil {
			return p, err
		}
	}
	p.metrics = u.render(page, settings, jaegerCapabilities{Archive: u.archive, AllServices: true, Metrics: true})
	p.plain = u.render(page, settings, jaegerCapabilities{Archive: u.archive, AllServices: true})
	return p, nil
}

// readBounded reads and closes a file of at most maxPageBytes.
func readBounded(f *os.File) ([]byte, error) {
	defer f.Close() //nolint:errcheck // only read
	b, err := io.ReadAll(io.LimitReader(f, maxPageBytes+1))
	if err == nil && len(b) > maxPageBytes {
		err = fmt.Errorf("%s is longer than %d bytes", f.Name(), maxPageBytes)
	}
	return b, err
}

// onlyFiles is a file system without directory listings.
type onlyFiles struct{ fs.FS }

// Open opens a regular file.
func (o onlyFiles) Open(name string) (fs.File, error) {
	f, err := o.FS.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

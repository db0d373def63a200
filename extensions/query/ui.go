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
	"github.com/tracing-backend/tracing/pipeline"
)

// UIConfig are the keys below `ui`.
type UIConfig struct {
	Path       string `yaml:"path" path:"folder" doc:"Folder with a built web UI: index.html, and in static/ the files that it loads. If empty, a plain page that lists the APIs is served instead."`
	ConfigFile string `yaml:"config_file" path:"file" doc:"File with the settings of the web UI, in .json or .js format. Changes are applied within 10 seconds."`
}

// Validate checks that config_file has a supported format and belongs to a UI.
func (c *UIConfig) Validate() error {
	switch {
	case c.ConfigFile == "":
		return nil
	case c.Path == "":
		return pipeline.BadKey("config_file", "requires path, the folder of the web UI that it configures")
	case !isUISettings(c.ConfigFile):
		return pipeline.BadKey("config_file", "unrecognized UI config file format, expecting .js or .json file: %s", c.ConfigFile)
	}
	return nil
}

// uiReload is the maximum age of the index page before its files are read again.
const uiReload = 10 * time.Second

// maxPageBytes is the maximum size of index.html and of the settings.
const maxPageBytes = 4 << 20

// ui serves the web UI.
type ui struct {
	config     UIConfig
	base       string
	archive    bool
	hasMetrics func(context.Context) bool // asks the store
	version    httpapi.Version
	logger     *zap.Logger
	now        func() time.Time
	root       *os.Root // nil if there is no UI
	files      http.Handler

	mu   sync.Mutex // guards page and read
	page builtPage
	read time.Time
}

// builtPage is the index page for a store with metrics and for one without.
type builtPage struct{ metrics, plain []byte }

func newUI(set pipeline.Settings, c UIConfig, base string, archive bool, hasMetrics func(context.Context) bool) *ui {
	u := &ui{config: c, base: base, archive: archive, hasMetrics: hasMetrics, logger: set.Logger, now: set.Env.Now}
	if set.Process != nil {
		b := set.Process.Build()
		u.version = httpapi.Version{Commit: b.Commit, Version: b.Version, Date: b.Date}
	}
	return u
}

// open reads the index page for the first time.
func (u *ui) open() (err error) {
	if u.config.Path == "" {
		return nil
	}
	if u.root, err = os.OpenRoot(u.config.Path); err != nil {
		return fmt.Errorf("ui::path: %w", err)
	}
	u.files = http.FileServerFS(onlyFiles{u.root.FS()})
	if u.page, err = u.build(); err != nil {
		return errors.Join(fmt.Errorf("ui: %w", err), u.close())
	}
	u.read = u.now()
	return nil
}

func (u *ui) close() error {
	if u.root == nil {
		return nil
	}
	return u.root.Close()
}

// static serves the files of the UI below static/. Symbolic links out of the folder are not
// followed.
func (u *ui) static(w http.ResponseWriter, r *http.Request) {
	if u.root == nil || r.Method != http.MethodGet && r.Method != http.MethodHead || path.Clean(r.URL.Path) != r.URL.Path {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=3600")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	u.files.ServeHTTP(w, r)
}

// index serves the index page for all paths that are not routes, because the UI selects the page in
// the browser. Without a UI it serves a plain page for the root.
func (u *ui) index(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || u.root == nil && r.URL.Path != u.base+"/" {
		http.NotFound(w, r)
		return
	}
	page := plainPage(u.base)
	if u.root != nil {
		if current := u.current(); u.hasMetrics(r.Context()) {
			page = current.metrics
		} else {
			page = current.plain
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(page)
}

// current returns the index page. If its files changed but are invalid, it logs a warning and
// returns the previous page.
func (u *ui) current() builtPage {
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
func (u *ui) build() (p builtPage, err error) {
	index, err := u.root.Open("index.html")
	if err != nil {
		return p, fmt.Errorf("cannot read the UI's index page: %w", err)
	}
	page, err := readBounded(index)
	if err != nil {
		return p, fmt.Errorf("cannot read the UI's index page: %w", err)
	}
	settings := uiSettings{}
	if name := u.config.ConfigFile; name != "" {
		if settings, err = readUISettings(name); err != nil {
			return p, err
		}
	}
	p.metrics = u.render(page, settings, capabilities{Archive: u.archive, Metrics: true})
	p.plain = u.render(page, settings, capabilities{Archive: u.archive})
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

// plainPage returns the index page without a UI.
func plainPage(base string) []byte {
	const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Tracing</title>
<h1>Tracing backend: query service</h1>
<p>No web UI is installed. The key <code>ui.path</code> of the extension <code>query</code> names the folder of one.</p>
<p>These APIs are served:</p>
<ul>
<li><a href="BASE/api/services">BASE/api/services</a></li>
<li><code>BASE/api/services/SERVICE/operations</code></li>
<li><code>BASE/api/traces?service=SERVICE</code> and <code>BASE/api/traces/ID</code></li>
<li><a href="BASE/api/dependencies">BASE/api/dependencies</a></li>
<li><code>BASE/api/metrics/calls?service=SERVICE</code>, and <code>errors</code>, <code>latencies</code></li>
<li><a href="BASE/api/v3/services">BASE/api/v3/services</a>, <code>BASE/api/v3/operations?service=SERVICE</code></li>
<li><code>BASE/api/v3/traces</code>, <code>BASE/api/v3/traces/ID</code>, <code>BASE/api/v3/trace-summaries</code></li>
</ul>
</html>
`
	return []byte(strings.ReplaceAll(page, "BASE", base))
}

package query

import (
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
	Path       string `yaml:"path" doc:"Folder with the build of a web UI: index.html, and what it loads in static/. Empty: a plain page says where the APIs are."`
	ConfigFile string `yaml:"config_file" doc:"Settings of the web UI, a .json or .js file; it is read again when it changes."`
}

// Validate checks that settings have a UI to go to.
func (c *UIConfig) Validate() error {
	switch {
	case c.ConfigFile == "":
		return nil
	case c.Path == "":
		return pipeline.BadKey("config_file", "needs path, the folder of the web UI that it configures")
	case !isUISettings(c.ConfigFile):
		return pipeline.BadKey("config_file", "unrecognized UI config file format, expecting .js or .json file: %s", c.ConfigFile)
	}
	return nil
}

// uiReload is how old a page may be that was made of files which have changed since.
const uiReload = 10 * time.Second

// maxPageBytes bounds index.html, and the settings.
const maxPageBytes = 4 << 20

// ui serves the pages that people look at.
type ui struct {
	config       UIConfig
	base         string
	capabilities capabilities
	version      httpapi.Version
	logger       *zap.Logger
	now          func() time.Time
	root         *os.Root // nil: there is no UI
	files        http.Handler

	mu   sync.Mutex // guards what follows
	page []byte
	read time.Time
}

func newUI(set pipeline.Settings, c UIConfig, base string, able capabilities) *ui {
	u := &ui{config: c, base: base, capabilities: able, logger: set.Logger, now: set.Env.Now}
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
	if u.page, err = u.make(); err != nil {
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

// static answers requests for the files of the UI, which are those below static/ only. Links that lead out of the folder are not followed.
func (u *ui) static(w http.ResponseWriter, r *http.Request) {
	if u.root == nil || r.Method != http.MethodGet && r.Method != http.MethodHead || path.Clean(r.URL.Path) != r.URL.Path {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=3600")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	u.files.ServeHTTP(w, r)
}

// index answers every other request: the pages of the UI are one, which looks at its address. Without a UI there is one page of our own.
func (u *ui) index(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || u.root == nil && r.URL.Path != u.base+"/" {
		http.NotFound(w, r)
		return
	}
	page := plainPage(u.base)
	if u.root != nil {
		page = u.current()
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Write(page) //nolint:errcheck // the client is gone
}

// current returns the index page. Files that cannot be read, or are wrong, leave it as it is.
func (u *ui) current() []byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	if now.Sub(u.read) < uiReload {
		return u.page
	}
	u.read = now
	page, err := u.make()
	if err != nil {
		u.logger.Warn("the pages of the UI stay as they are", zap.Error(err))
		return u.page
	}
	u.page = page
	return page
}

// make makes the index page of its files.
func (u *ui) make() ([]byte, error) {
	index, err := u.root.Open("index.html")
	if err != nil {
		return nil, fmt.Errorf("cannot read the UI's index page: %w", err)
	}
	page, err := readBounded(index)
	if err != nil {
		return nil, fmt.Errorf("cannot read the UI's index page: %w", err)
	}
	settings := uiSettings{}
	if name := u.config.ConfigFile; name != "" {
		if settings, err = readUISettings(name); err != nil {
			return nil, err
		}
	}
	return u.render(page, settings), nil
}

// readBounded reads a file, and closes it.
func readBounded(f *os.File) ([]byte, error) {
	defer f.Close() //nolint:errcheck // it was only read
	b, err := io.ReadAll(io.LimitReader(f, maxPageBytes+1))
	if err == nil && len(b) > maxPageBytes {
		err = fmt.Errorf("%s is longer than %d bytes", f.Name(), maxPageBytes)
	}
	return b, err
}

// onlyFiles is a file system without lists of its folders.
type onlyFiles struct{ fs.FS }

// Open opens a file.
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

// plainPage says what runs here.
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

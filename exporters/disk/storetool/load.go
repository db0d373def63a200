package storetool

import (
	"context"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/commands"
)

// Limits of a load.
const (
	defaultParallel = 32
	maxParallel     = 256
)

// loadFlags are the flags of `load`.
type loadFlags struct {
	endpoint, tenantHeader string
	headers                http.Header
	parallel               int
}

func (f *loadFlags) define(fs *flag.FlagSet) {
	fs.StringVar(&f.endpoint, "endpoint", "http://localhost:4318", "URL of an OTLP receiver over HTTP.")
	fs.StringVar(&f.tenantHeader, "tenant-header", "x-tenant", "Header in which the tenant of exported spans is sent.")
	fs.IntVar(&f.parallel, "parallel", defaultParallel, "Number of requests that are sent at the same time.")
	f.headers = commands.HeaderFlag(fs, "Header of each request, such as for authentication")
}

// check returns the URL for requests.
func (f *loadFlags) check() (string, error) {
	if err := client.ValidateURL("", f.endpoint); err != nil {
		return "", commands.BadUsage("--endpoint: %w", err)
	}
	u, err := url.Parse(f.endpoint)
	if err != nil {
		return "", err
	}
	if !httpguts.ValidHeaderFieldName(f.tenantHeader) {
		return "", commands.BadUsage("--tenant-header: %q is not a valid header name", f.tenantHeader)
	}
	if f.parallel < 1 || f.parallel > maxParallel {
		return "", commands.BadUsage("--parallel must be between 1 and %d", maxParallel)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

func (t tool) load(fs *flag.FlagSet) runner {
	f := &loadFlags{}
	f.define(fs)
	return func(ctx context.Context, in commands.Invocation) error {
		dir, err := oneDir(in)
		if err != nil {
			return err
		}
		target, err := f.check()
		if err != nil {
			return err
		}
		transport := &http.Transport{MaxIdleConnsPerHost: f.parallel}
		defer transport.CloseIdleConnections()
		l := &loader{transport: transport, url: target, headers: f.headers, tenantHeader: f.tenantHeader, parallel: f.parallel, log: in.Stderr}
		if err := l.load(ctx, filepath.FromSlash(dir)); err != nil {
			return fmt.Errorf("%w; rerun the command to continue", err)
		}
		fmt.Fprintf(in.Stdout, "sent %d requests from %d files; skipped %d files that were sent before\n", l.requests, l.files, l.skipped)
		return nil
	}
}

// loader sends exported files to a receiver.
type loader struct {
	transport                *http.Transport
	url                      string
	headers                  http.Header
	tenantHeader             string
	parallel                 int
	logging                  sync.Mutex // held while requests of a round write to log
	log                      io.Writer
	requests, files, skipped int

	journal *journal
}

// load sends the files of a folder that are not in the folder's journal.
func (l *loader) load(ctx context.Context, dir string) error {
	files, err := exportedFiles(dir)
	if err != nil {
		return err
	}
	if l.journal, err = openJournal(filepath.Join(dir, journalName), pipeline.MaskURLs(l.url)); err != nil {
		return err
	}
	defer l.journal.close()
	var total int64
	for _, f := range files {
		total += f.size
	}
	var done int64
	p := newProgress(l.log, "load", total, func() int64 { return done }, formatSize, time.Now)
	for _, f := range files {
		from := l.journal.sent[f.name]
		if from >= f.size {
			l.skipped++
			done += f.size
			continue
		}
		done += from
		err := l.file(ctx, dir, f.name, from, func(n int64) { done += n; p.step() })
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		l.files++
	}
	return nil
}

// exportedFile is a file of an export. name is relative to the folder and has forward slashes.
type exportedFile struct {
	name string
	size int64
}

// exportedFiles returns the files that `export --format otlp-proto` wrote, oldest spans first.
func exportedFiles(dir string) ([]exportedFile, error) {
	var list []exportedFile
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".pb") {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		list = append(list, exportedFile{filepath.ToSlash(name), info.Size()})
		return err
	})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("folder %s has no .pb files; write them with \"tracing store export --format otlp-proto\"", dir)
	}
	slices.SortFunc(list, func(a, b exportedFile) int { return strings.Compare(a.name, b.name) })
	return list, err
}

// tenantOf returns the tenant of an exported file, or "" for the default one.
func tenantOf(name string) (string, error) {
	first, _, _ := strings.Cut(name, "/")
	escaped, ok := strings.CutPrefix(first, "tenant=")
	if !ok {
		return "", nil
	}
	return url.PathUnescape(escaped)
}

// file sends a file from an offset on, in rounds of several requests. After each round it records
// how much of the file the receiver has acknowledged.
func (l *loader) file(ctx context.Context, dir, name string, from int64, done func(int64)) error {
	tenant, err := tenantOf(name)
	if err != nil {
		return fmt.Errorf("reading the tenant: %w", err)
	}
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	r, err := newRequestReader(f, from)
	if err != nil {
		return err
	}
	for {
		round, err := r.next(l.parallel)
		if err != nil {
			return err
		}
		if len(round) == 0 {
			return nil
		}
		if err := l.round(ctx, tenant, round); err != nil {
			return err
		}
		done(r.offset - from)
		from = r.offset
		l.requests += len(round)
		if err := l.journal.record(name, r.offset); err != nil {
			return err
		}
	}
}

package sampling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

// maxFileSize is the upper limit of max_size. The whole file is held in memory, temporarily also as
// a tree.
const maxFileSize = 64 << 20

// FileConfig holds the keys of `file`.
type FileConfig struct {
	Path               string                               `yaml:"path" path:"file-or-url" doc:"Path or URL (http or https) of the strategies file. If empty, all services have default_sampling_probability."`
	ReloadInterval     pipeline.Duration                    `yaml:"reload_interval" doc:"Interval at which the strategies file is reread. 0 disables reloading."`
	DefaultProbability float64                              `yaml:"default_sampling_probability" doc:"Sampling probability of services without a strategy in the file, if the file has no default_strategy."`
	MaxSize            pipeline.ByteSize                    `yaml:"max_size" doc:"Maximum size of the strategies file."`
	Timeout            pipeline.Duration                    `yaml:"timeout" doc:"Timeout of requests for the strategies file, if path is a URL."`
	TLS                client.TLSConfig                     `yaml:"tls" doc:"TLS settings, if path is an https URL."`
	Headers            map[string]pipeline.Secret           `yaml:"headers" doc:"Headers of every request, if path is a URL."`
	Auth               pipeline.Optional[client.AuthConfig] `yaml:"auth" doc:"Authentication of requests, if path is a URL."`
}

func defaultFile() FileConfig {
	return FileConfig{ReloadInterval: pipeline.Duration(10 * time.Second), DefaultProbability: 0.001, MaxSize: 4 << 20,
		Timeout: pipeline.Duration(5 * time.Second), TLS: client.DefaultHTTPConfig().TLS}
}

// Validate reports invalid values.
func (c *FileConfig) Validate() error {
	var errs []error
	if c.isURL() {
		errs = append(errs, client.ValidateURL("path", c.Path))
	}
	if !(c.DefaultProbability >= 0 && c.DefaultProbability <= 1) {
		errs = append(errs, pipeline.BadKey("default_sampling_probability",
			"must be a probability from 0 to 1, not %v", c.DefaultProbability))
	}
	if c.MaxSize < 1 || c.MaxSize > maxFileSize {
		errs = append(errs, pipeline.BadKey("max_size", "must be from 1 to %s, not %s", pipeline.ByteSize(maxFileSize), c.MaxSize))
	}
	if c.Timeout <= 0 {
		errs = append(errs, pipeline.BadKey("timeout",
			"must be above 0; without a timeout, a server that does not respond would block reloads"))
	}
	return errors.Join(errs...)
}

// isURL reports whether the path is a URL, that is, has a scheme and a host.
func (c *FileConfig) isURL() bool {
	u, err := url.Parse(c.Path)
	return err == nil && u.Scheme != "" && u.Host != ""
}

// fileSource provides the strategies of a file or URL. It reads them at start and rereads them at
// intervals. If reading fails, the previous strategies stay active and the error is reported.
type fileSource struct {
	set   pipeline.Settings
	cfg   FileConfig
	name  string       // file name for messages
	http  *client.HTTP // nil for a file
	state atomic.Pointer[fileState]
	text  []byte // source of the current table, nil if there is none; used only by the reload goroutine

	stop    context.CancelFunc
	stopped chan struct{}
}

// fileState is the current table and the error of the last reload.
type fileState struct {
	table   *table
	problem string // why the current file is not active; "" if it is
}

func newFileSource(set pipeline.Settings, c FileConfig) (*fileSource, error) {
	s := &fileSource{set: set, cfg: c, name: c.Path}
	if !c.isURL() {
		return s, nil
	}
	s.name, _, _ = strings.Cut(c.Path, "?") // the query may contain secrets
	cfg := client.DefaultHTTPConfig()
	cfg.TLS, cfg.Headers, cfg.Auth, cfg.Compression = c.TLS, c.Headers, c.Auth, client.CompressionNone
	var err error
	s.http, err = client.NewHTTP(set, cfg)
	return s, err
}

// Start reads the strategies. Mistakes in a file, or a file that cannot be read, are errors. If a
// URL cannot be read, Start does not fail: all services have the built-in probability until the
// server responds.
func (s *fileSource) Start(ctx context.Context) error {
	if s.http != nil {
		if err := s.http.Start(ctx); err != nil {
			return err
		}
	}
	probability := s.cfg.DefaultProbability
	if s.cfg.Path == "" {
		s.activate(&table{other: builtIn(probability, "no strategies file configured: the built-in probability applies")})
		return nil
	}
	text, err := s.read(ctx)
	switch {
	case err == nil:
		err = s.load(text)
	case s.http != nil:
		s.activate(&table{other: builtIn(probability, "strategies could not be read yet: the built-in probability applies")})
		s.fail(err)
		err = nil
	}
	if err != nil {
		return fmt.Errorf("file::path: %w", err)
	}
	if s.cfg.ReloadInterval > 0 {
		s.startReloading()
	}
	return nil
}

// Stop stops reloading.
func (s *fileSource) Stop(ctx context.Context) error {
	if s.stop != nil {
		s.stop()
		<-s.stopped
	}
	if s.http != nil {
		return s.http.Stop(ctx)
	}
	return nil
}

// startReloading starts a goroutine that reloads the file at intervals until Stop.
func (s *fileSource) startReloading() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.stopped = stop, make(chan struct{})
	go func() {
		defer close(s.stopped)
		ticker := time.NewTicker(s.cfg.ReloadInterval.Std())
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				s.reload(ctx)
			}
		}
	}()
}

// reload reads the file and activates it if it has changed and is valid.
func (s *fileSource) reload(ctx context.Context) {
	text, err := s.read(ctx)
	if err == nil && (s.text == nil || !bytes.Equal(text, s.text)) {
		err = s.load(text)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.fail(err)
	case s.state.Load().problem != "":
		t := s.state.Load().table
		s.state.Store(&fileState{table: t})
		s.set.Report(t.warning())
	}
}

// load parses a text and activates its strategies.
func (s *fileSource) load(text []byte) error {
	f, err := readStrategies(s.name, text, s.cfg.DefaultProbability)
	if err != nil {
		return err
	}
	t := newTable(f, s.cfg.DefaultProbability)
	before := s.state.Load()
	s.text = text
	s.activate(t)
	if t.warnings != nil || before != nil && (before.problem != "" || before.table.warnings != nil) {
		s.set.Report(t.warning())
	}
	s.set.Logger.Info("loaded sampling strategies", zap.String("file", s.name), zap.Int("services", len(t.services)))
	if len(t.ignored) > 0 {
		s.set.Logger.Warn("ignored unknown members of the strategies file", zap.Strings("members", t.ignored))
	}
	return nil
}

// warning returns a report of the settings that are not followed as written.
func (t *table) warning() error {
	if t.warnings == nil {
		return nil
	}
	return fmt.Errorf("sampling strategies are active, but not all as written: %w", t.warnings)
}

// activate makes a table current.
func (s *fileSource) activate(t *table) {
	var before *table
	if state := s.state.Load(); state != nil {
		before = state.table
	}
	t.setSince(before, s.set.Env.Now())
	s.state.Store(&fileState{table: t})
}

// fail reports an error. The current strategies stay active.
func (s *fileSource) fail(err error) {
	err = fmt.Errorf("loading new sampling strategies: %w", err)
	s.state.Store(&fileState{table: s.state.Load().table, problem: err.Error()})
	s.set.Report(err)
}

// decide implements source. Tenants share the strategies of a file.
func (s *fileSource) decide(_ context.Context, _, service string) (decision, error) {
	state := s.state.Load()
	return s.decision(state, state.table.of(service)), nil
}

// decision returns an entry of the table with its source.
func (s *fileSource) decision(state *fileState, e *entry) decision {
	d := decision{entry: e, source: "file", problem: state.problem}
	switch {
	case e.place == "":
		d.source = "built-in"
	case s.http != nil:
		d.source = "url"
	}
	return d
}

// read returns the content of the file. Errors contain its name.
func (s *fileSource) read(ctx context.Context) ([]byte, error) {
	if s.http == nil {
		return readFile(s.cfg.Path, int64(s.cfg.MaxSize))
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout.Std())
	defer cancel()
	a, err := s.http.Get(ctx, s.cfg.Path, int64(s.cfg.MaxSize))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", s.name, err)
	}
	if a.Status != http.StatusOK {
		return nil, fmt.Errorf("reading %s: unexpected response %d %s", s.name, a.Status, http.StatusText(a.Status))
	}
	return a.Body, nil
}

// readFile returns the content of a file of at most maxSize bytes.
func readFile(name string, maxSize int64) ([]byte, error) {
	b, err := pipeline.ReadFile(context.Background(), name, pipeline.ByteSize(maxSize))
	if errors.Is(err, pipeline.ErrFileTooLarge) {
		return nil, fmt.Errorf("%w; increase file::max_size", err)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

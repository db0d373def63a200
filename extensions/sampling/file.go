package sampling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

// mostMaxSize bounds max_size: a file is in memory as a whole, and for a moment as a tree.
const mostMaxSize = 64 << 20

// FileConfig are the keys below `file`.
type FileConfig struct {
	Path               string                     `yaml:"path" doc:"Strategies file, or http or https URL of one; empty: all services have default_sampling_probability."`
	ReloadInterval     pipeline.Duration          `yaml:"reload_interval" doc:"How often to look whether the strategies have changed; 0: never."`
	DefaultProbability float64                    `yaml:"default_sampling_probability" doc:"Probability for services of which the file says nothing, not even by default_strategy."`
	MaxSize            pipeline.ByteSize          `yaml:"max_size" doc:"Greatest size of the file."`
	Timeout            pipeline.Duration          `yaml:"timeout" doc:"How long the server of a URL may take to answer."`
	TLS                client.TLSConfig           `yaml:"tls" doc:"How connections to an https URL are secured."`
	Headers            map[string]pipeline.Secret `yaml:"headers" doc:"Headers to send to the server of a URL; values are never shown."`
	Auth               client.AuthConfig          `yaml:"auth" doc:"How requests to the server of a URL prove who sends them."`
}

func defaultFile() FileConfig {
	return FileConfig{ReloadInterval: pipeline.Duration(10 * time.Second), DefaultProbability: 0.001, MaxSize: 4 << 20,
		Timeout: pipeline.Duration(5 * time.Second), TLS: client.DefaultHTTPConfig().TLS}
}

// Validate reports values that cannot work.
func (c *FileConfig) Validate() error {
	var errs []error
	if c.isURL() {
		errs = append(errs, client.ValidateURL("path", c.Path))
	}
	if !(c.DefaultProbability >= 0 && c.DefaultProbability <= 1) {
		errs = append(errs, pipeline.BadKey("default_sampling_probability",
			"must be a probability from 0 to 1, not %v", c.DefaultProbability))
	}
	if c.MaxSize < 1 || c.MaxSize > mostMaxSize {
		errs = append(errs, pipeline.BadKey("max_size", "must be from 1 to %s, not %s", pipeline.ByteSize(mostMaxSize), c.MaxSize))
	}
	if c.Timeout <= 0 {
		errs = append(errs, pipeline.BadKey("timeout", "must be above 0, or a server that is silent would be waited for without end"))
	}
	return errors.Join(errs...)
}

// isURL says whether the path is a URL: whatever has a scheme and a host.
func (c *FileConfig) isURL() bool {
	u, err := url.Parse(c.Path)
	return err == nil && u.Scheme != "" && u.Host != ""
}

// fileSource has the strategies of a file or URL. They are read when it starts, and again at intervals. What cannot be used leaves those
// in force that are, and is reported.
type fileSource struct {
	set   pipeline.Settings
	cfg   FileConfig
	name  string       // as messages call the file
	http  *client.HTTP // nil: it is a file
	state atomic.Pointer[fileState]
	text  []byte // what the table in force was made of, nil: of none; the reloading goroutine's own

	stop    context.CancelFunc
	stopped chan struct{}
}

// fileState is what is known of the file.
type fileState struct {
	table   *table
	problem string // why the file as it is now is not in force; "" if it is
}

func newFileSource(set pipeline.Settings, c FileConfig) (*fileSource, error) {
	s := &fileSource{set: set, cfg: c, name: c.Path}
	if !c.isURL() {
		return s, nil
	}
	s.name, _, _ = strings.Cut(c.Path, "?") // what follows may be a secret
	cfg := client.DefaultHTTPConfig()
	cfg.TLS, cfg.Headers, cfg.Auth, cfg.Compression = c.TLS, c.Headers, c.Auth, client.CompressionNone
	var err error
	s.http, err = client.NewHTTP(set, cfg)
	return s, err
}

// Start reads the strategies. A file that cannot be read and mistakes in it are errors. A server that does not answer is none: until it
// does, all services have the built-in probability.
func (s *fileSource) Start(ctx context.Context) error {
	if s.http != nil {
		if err := s.http.Start(ctx); err != nil {
			return err
		}
	}
	rest := s.cfg.DefaultProbability
	if s.cfg.Path == "" {
		s.adopt(&table{other: builtIn(rest, "there is no strategies file: the built-in probability holds")})
		return nil
	}
	text, err := s.read(ctx)
	switch {
	case err == nil:
		err = s.load(text)
	case s.http != nil:
		s.adopt(&table{other: builtIn(rest, "the strategies could not be read yet: the built-in probability holds")})
		s.fail(err)
		err = nil
	}
	if err != nil {
		return fmt.Errorf("file::path: %w", err)
	}
	if s.cfg.ReloadInterval > 0 {
		s.follow()
	}
	return nil
}

// Stop ends the reloading.
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

// follow reads the file at intervals until Stop.
func (s *fileSource) follow() {
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

// reload puts the file into force if it has changed and is good.
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
		s.state.Store(&fileState{table: s.state.Load().table})
		s.set.Report(nil)
	}
}

// load makes strategies of a text, and puts them into force.
func (s *fileSource) load(text []byte) error {
	f, err := readStrategies(s.name, text)
	if err != nil {
		return err
	}
	t := newTable(f, s.cfg.DefaultProbability)
	before := s.state.Load()
	s.text = text
	s.adopt(t)
	if before != nil && before.problem != "" {
		s.set.Report(nil)
	}
	s.set.Logger.Info("sampling strategies are in force", zap.String("file", s.name), zap.Int("services", len(t.services)))
	if len(t.ignored) > 0 {
		s.set.Logger.Warn("members of the strategies file that mean nothing were ignored", zap.Strings("members", t.ignored))
	}
	return nil
}

// adopt puts a table into force.
func (s *fileSource) adopt(t *table) {
	var before *table
	if state := s.state.Load(); state != nil {
		before = state.table
	}
	t.date(before, s.set.Env.Now())
	s.state.Store(&fileState{table: t})
}

// fail leaves in force what is, and says why.
func (s *fileSource) fail(err error) {
	err = fmt.Errorf("new sampling strategies are not in force: %w", err)
	s.state.Store(&fileState{table: s.state.Load().table, problem: err.Error()})
	s.set.Report(err)
}

// decide returns the strategy of a service. Tenants share the strategies of a file.
func (s *fileSource) decide(_ context.Context, _, service string) (decision, error) {
	state := s.state.Load()
	d := decision{entry: state.table.of(service), source: "file", problem: state.problem}
	switch {
	case d.place == "":
		d.source = "built-in"
	case s.http != nil:
		d.source = "url"
	}
	return d, nil
}

// read returns the text of the file. The error names it.
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
		return nil, fmt.Errorf("reading %s: the server answers %d %s", s.name, a.Status, http.StatusText(a.Status))
	}
	return a.Body, nil
}

func readFile(name string, most int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // reading a pipe might never end
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if int64(len(b)) > most {
		return nil, fmt.Errorf("%s is larger than %s; file::max_size allows more", name, pipeline.ByteSize(most))
	}
	return b, nil
}

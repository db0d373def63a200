package engine

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tracing-backend/tracing/test/engines/process"
)

// Options are the settings of a server. The zero value is usable.
type Options struct {
	Dir    string // data folder; a temporary one if it is ""
	Config string // file with settings of ClickHouse's server, in XML; none if it is ""
}

// Server is an engine that runs as a process of its own. Its methods must not be called
// concurrently, except for the addresses and [Server.Database].
type Server struct {
	opts   Options
	binary string
	lib    string
	http   string // address, after the first start
	native string // address, after the first start

	cmd   *exec.Cmd
	stdin io.Closer // its end stops the process
	log   *bytes.Buffer
}

// Start starts a server, and stops it when the test ends. It skips the test if there is no engine.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	s := &Server{opts: o, lib: Library(tb), binary: binary(tb)}
	if o.Dir == "" {
		s.opts.Dir = tb.TempDir()
	}
	if err := s.start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Stop)
	return s
}

func (s *Server) start() error {
	if s.http == "" {
		ports, err := process.FreePorts(2)
		if err != nil {
			return err
		}
		s.http, s.native = process.LocalAddr(ports[0]), process.LocalAddr(ports[1])
	}
	args := []string{"-lib", s.lib, "-dir", s.opts.Dir, "-http", s.http, "-native", s.native}
	if s.opts.Config != "" {
		args = append(args, "-config", s.opts.Config)
	}
	s.cmd, s.log = exec.Command(s.binary, args...), &bytes.Buffer{}
	s.cmd.Stderr = s.log
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return err
	}
	s.stdin = in
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	if _, err := bufio.NewReader(out).ReadBytes('\n'); err != nil {
		s.Kill()
		return fmt.Errorf("starting the ClickHouse engine: %w: %s", err, s.log)
	}
	return nil
}

// HTTPAddr returns the host and port of the HTTP protocol.
func (s *Server) HTTPAddr() string { return s.http }

// NativeAddr returns the host and port of the native protocol.
func (s *Server) NativeAddr() string { return s.native }

// Dir returns the data folder.
func (s *Server) Dir() string { return s.opts.Dir }

// PID returns the id of the running process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Kill ends the process with SIGKILL. Until [Server.Restart], connections are refused.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Kill() //nolint:errcheck // the process may have ended
	s.wait()
}

// Stop lets the process end the statements that run, and waits for its end.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Signal(syscall.SIGCONT) //nolint:errcheck // the process may have ended
	s.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // the process may have ended
	s.wait()
}

func (s *Server) wait() {
	s.cmd.Wait() //nolint:errcheck // how the process ended does not matter
	s.stdin.Close()
	s.cmd = nil
}

// Restart starts a server that was stopped or killed, with the same addresses and data.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	if s.cmd != nil {
		tb.Fatal("the server is running")
	}
	if err := s.start(); err != nil {
		tb.Fatal(err)
	}
}

// databases counts the databases of the process.
var databases atomic.Int64

// Database creates a database, and drops it when the test ends.
func (s *Server) Database(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), databases.Add(1))
	s.Exec(tb, "CREATE DATABASE "+name)
	tb.Cleanup(func() {
		if s.cmd != nil {
			s.Exec(tb, "DROP DATABASE IF EXISTS "+name+" SYNC")
		}
	})
	return name
}

// client returns a client that keeps no connection.
func (*Server) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

// Exec runs a statement without parameters and returns its output as tab-separated lines.
func (s *Server) Exec(tb testing.TB, statement string) string {
	tb.Helper()
	out, err := s.Query(statement)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// Query is like [Server.Exec], but returns errors.
func (s *Server) Query(statement string) (string, error) {
	u := url.URL{Scheme: "http", Host: s.http, Path: "/", RawQuery: "default_format=TabSeparated"}
	resp, err := s.client().Post(u.String(), "text/plain", strings.NewReader(statement))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", statement, out)
	}
	return string(out), err
}

// shared is the server of [Shared].
var shared struct {
	sync.Mutex
	server *Server
	dir    string
}

// Shared returns a server for all tests of the process, which starts with the first of them. It
// skips the test if there is no engine.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	lib, program := Library(tb), binary(tb)
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		return shared.server
	}
	dir, err := os.MkdirTemp("", "tracing-engine")
	if err != nil {
		tb.Fatal(err)
	}
	shared.dir = dir
	s := &Server{opts: Options{Dir: dir}, lib: lib, binary: program}
	if err := s.start(); err != nil {
		tb.Fatal(err)
	}
	shared.server = s
	return s
}

// Tests are the tests of a package. Run stops the server of [Shared] and removes temporary files
// when the tests have ended; pass it to goleak.VerifyTestMain.
type Tests struct {
	*testing.M
}

// Run runs the tests and returns the exit code.
func (t Tests) Run() int { return Main(t.M) }

// Main runs the tests of a package, stops the server of [Shared] and removes temporary files. It
// returns the exit code.
func Main(m *testing.M) int {
	defer removeBinary()
	defer func() {
		if shared.server != nil {
			shared.server.Stop()
		}
		os.RemoveAll(shared.dir) //nolint:errcheck // in the system's folder for temporary files
	}()
	return m.Run()
}

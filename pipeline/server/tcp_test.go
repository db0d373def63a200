package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/certs/certstest"
	"github.com/tracing-backend/tracing/pipeline/server"
)

func tcpConfig() server.TCPConfig { return server.DefaultTCPConfig("127.0.0.1:0") }

func (f *fixture) tcp(cfg server.TCPConfig, h func(context.Context, *server.Conn)) (addr string, stop func(context.Context) error) {
	f.t.Helper()
	s, err := server.NewTCP(f.set, "tcp", cfg, h)
	if err != nil {
		f.t.Fatal(err)
	}
	stop = f.run(s)
	return s.Addr(), stop
}

// respondToLines returns a handler that responds to each line with the result of respond, and to an
// error with its status and text.
func respondToLines(respond func(ctx context.Context, line string) string) func(context.Context, *server.Conn) {
	return func(ctx context.Context, c *server.Conn) {
		for {
			line, err := c.Next(server.SplitLines)
			if err == io.EOF {
				return
			}
			if err != nil {
				code, _ := pipeline.HTTPStatus(err)
				fmt.Fprintf(c, "%d %v\n", code, err)
				return
			}
			if _, err := fmt.Fprintln(c, respond(ctx, string(line))); err != nil {
				return
			}
		}
	}
}

func size(_ context.Context, line string) string { return fmt.Sprint(len(line)) }

// lineClient is a client that sends text and reads lines.
type lineClient struct {
	net.Conn
	t  *testing.T
	in *bufio.Reader
}

func (f *fixture) connect(t *testing.T, addr string) *lineClient {
	t.Helper()
	c, err := f.dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &lineClient{Conn: c, t: t, in: bufio.NewReader(c)}
}

func (c *lineClient) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Error(err)
	}
}

// readLine returns the next line from the server, or "" at the end.
func (c *lineClient) readLine() string {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	if err != nil && err != io.EOF && err != io.ErrClosedPipe {
		c.t.Errorf("reading: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (c *lineClient) expect(want ...string) {
	c.t.Helper()
	for _, w := range want {
		if got := c.readLine(); got != w && (w == "" || !strings.HasPrefix(got, w)) {
			c.t.Errorf("got line %q, want %q", got, w)
		}
	}
}

func TestLines(t *testing.T) {
	f := newFixture(t, 1<<20)
	addr, stop := f.tcp(tcpConfig(), respondToLines(size))
	c := f.connect(t, addr)
	c.send("one\r\n\nthree")
	c.expect("3", "0")
	c.send("!\n" + strings.Repeat("x", 60_000) + "\n")
	c.expect("6", "60000")
	if peak := f.set.Budget.Peak(); peak < 60_000 {
		t.Errorf("peak reservation for a line of 60000 bytes: %d", peak)
	}
	c.send("short\n")
	c.expect("5")
	if used := f.set.Budget.Used(); used > 8<<10 {
		t.Errorf("idle connection reserves %d bytes", used)
	}
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.expect("")
	if err := stop(t.Context()); err != nil || f.set.Budget.Used() != 0 {
		t.Errorf("Stop: %v, %d bytes reserved", err, f.set.Budget.Used())
	}
}

// The client receives the error although the server has not read all its data.
func TestTooLongLine(t *testing.T) {
	f := newFixture(t, 0)
	cfg := tcpConfig()
	cfg.MaxMessageSize = 5000
	addr, stop := f.tcp(cfg, respondToLines(size))
	c := f.connect(t, addr)
	c.send(strings.Repeat("x", 4999) + "\n")
	c.expect("4999")
	c.send(strings.Repeat("x", 5000) + "\n" + strings.Repeat("more\n", 10_000))
	c.expect("413 message exceeds max_message_size of 5000 bytes", "")
	c.Close()
	if err := stop(t.Context()); err != nil || f.refused(server.ReasonTooLarge) != 1 {
		t.Errorf("Stop: %v, counted %v", err, f.refused(server.ReasonTooLarge))
	}
}

func TestMessagesAreChargedToTheBudget(t *testing.T) {
	f := newFixture(t, 64<<10) // a message may use half of it
	addr, _ := f.tcp(tcpConfig(), respondToLines(size))
	c := f.connect(t, addr)
	c.send("x\n")
	c.expect("1")
	others, err := f.set.Budget.Reserve(56 << 10)
	if err != nil {
		t.Fatal(err)
	}
	c.send(strings.Repeat("x", 5000) + "\n")
	c.expect("429 too many bytes in flight", "")
	others.Release()
	c = f.connect(t, addr)
	c.send(strings.Repeat("x", 32<<10))
	c.expect("413 message exceeds max_message_size of 32768 bytes")
	if f.refused(server.ReasonOverBudget) != 1 {
		t.Errorf("counted %v", f.refused(server.ReasonOverBudget))
	}
}

func TestUnterminatedLine(t *testing.T) {
	f := newFixture(t, 0)
	addr, _ := f.tcp(tcpConfig(), respondToLines(size))
	c := f.connect(t, addr)
	c.send("one\ntw")
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.expect("3", "400 message incomplete: unexpected EOF", "")
	if f.refused(server.ReasonIncomplete) != 1 {
		t.Errorf("counted %v", f.refused(server.ReasonIncomplete))
	}
}

func TestSlowClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0).inMemory()
		cfg := tcpConfig()
		cfg.IdleTimeout, cfg.ReadTimeout = pipeline.Duration(time.Minute), pipeline.Duration(10*time.Second)
		addr, _ := f.tcp(cfg, respondToLines(size))

		silent, start := f.connect(t, addr), time.Now()
		time.Sleep(30 * time.Second)
		silent.send("here\n")
		silent.expect("4", "")
		if d := time.Since(start); d != 90*time.Second {
			t.Errorf("idle connection closed after %v", d)
		}
		if n := f.metric("tracing_server_refused_requests_total", ""); n != 0 {
			t.Errorf("idle connection: %v refusals", n)
		}

		slow := f.connect(t, addr)
		start = time.Now()
		var sending sync.WaitGroup
		sending.Go(func() {
			for range 4 { // sending single bytes does not extend the timeout
				slow.send("x")
				time.Sleep(3 * time.Second)
			}
		})
		defer sending.Wait()
		slow.expect("503 message incomplete after read_timeout", "")
		if d := time.Since(start); d != 10*time.Second || f.refused(server.ReasonIncomplete) != 1 {
			t.Errorf("refused after %v, counted %v", d, f.refused(server.ReasonIncomplete))
		}
	})
}

// Responses to a client that does not read fill the buffers.
func TestWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0).inMemory()
		left := make(chan time.Time, 1)
		addr, _ := f.tcp(tcpConfig(), func(_ context.Context, c *server.Conn) {
			for {
				if _, err := c.Write(make([]byte, 1000)); err != nil {
					left <- time.Now()
					return
				}
			}
		})
		start := time.Now()
		f.connect(t, addr)
		if d := (<-left).Sub(start); d != tcpConfig().WriteTimeout.Std() {
			t.Errorf("write failed after %v", d)
		}
	})
}

func TestTCPHandlerPanicClosesItsConnection(t *testing.T) {
	f := newFixture(t, 0)
	addr, _ := f.tcp(tcpConfig(), respondToLines(func(_ context.Context, line string) string {
		if line == "bad" {
			panic("boom")
		}
		return line
	}))
	first, second := f.connect(t, addr), f.connect(t, addr)
	first.send("good\nbad\n")
	first.expect("good", "")
	second.send("good\n")
	second.expect("good")
	if n := f.metric("tracing_server_panics_total", ""); n != 1 {
		t.Errorf("counted %v panics", n)
	}
}

func TestTCPConnectionsAreLimited(t *testing.T) {
	f := newFixture(t, 0)
	cfg := tcpConfig()
	cfg.MaxConnections = 1
	addr, _ := f.tcp(cfg, respondToLines(size))
	first := f.connect(t, addr)
	first.send("x\n")
	first.expect("1")
	if _, err := f.connect(t, addr).Read(make([]byte, 1)); err == nil {
		t.Error("the second connection was served")
	}
	if n := f.metric("tracing_server_refused_connections_total", ""); n != 1 {
		t.Errorf("counted %v", n)
	}
}

// Stop with an idle connection, one with a line in the handler and another line queued, and one
// with an incomplete line.
func TestTCPStopDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0).inMemory()
		leave := make(chan bool)
		addr, stop := f.tcp(tcpConfig(), respondToLines(func(ctx context.Context, line string) string {
			if line == "wait" {
				<-leave
			}
			if ctx.Err() != nil {
				return "canceled"
			}
			return line
		}))
		idle, busy, half := f.connect(t, addr), f.connect(t, addr), f.connect(t, addr)
		idle.send("hello\n")
		idle.expect("hello")
		busy.send("wait\nnext\n")
		half.send("hel")
		synctest.Wait()
		stopped := make(chan error, 1)
		go func() { stopped <- stop(t.Context()) }()
		idle.expect("")
		half.expect("503 shutting down", "")
		synctest.Wait()
		select {
		case err := <-stopped:
			t.Errorf("Stop did not wait: %v", err)
		default:
		}
		close(leave)
		busy.expect("wait", "503 shutting down", "")
		if err := <-stopped; err != nil {
			t.Errorf("Stop: %v", err)
		}
		if n := f.refused(server.ReasonStopping); n != 2 {
			t.Errorf("counted %v", n)
		}
	})
}

func TestTCPStopAbortsAtDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0).inMemory()
		addr, stop := f.tcp(tcpConfig(), respondToLines(func(ctx context.Context, _ string) string {
			<-ctx.Done()
			return "too late"
		}))
		c := f.connect(t, addr)
		c.send("x\n")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := stop(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "tcp: 1 connections aborted") {
			t.Errorf("Stop: %v", err)
		}
		c.expect("")
	})
}

// failingListener fails a number of times, like the listener of a process without free file
// descriptors.
type failingListener struct {
	net.Listener
	failures atomic.Int32
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.failures.Add(-1) >= 0 {
		return nil, errors.New("too many open files")
	}
	return l.Listener.Accept()
}

func TestAcceptIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0).inMemory()
		f.set.Env.Listen = func(context.Context, string, string) (net.Listener, error) {
			l := &failingListener{Listener: f.mem}
			l.failures.Store(3)
			return l, nil
		}
		addr, _ := f.tcp(tcpConfig(), respondToLines(size))
		c := f.connect(t, addr)
		c.send("x\n")
		c.expect("1")
	})
}

func TestTCPStopWithoutConnectionsIgnoresDeadline(t *testing.T) {
	for range 20 {
		f := newFixture(t, 0)
		_, stop := f.tcp(tcpConfig(), respondToLines(size))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := stop(ctx); err != nil {
			t.Errorf("Stop: %v", err)
		}
	}
}

// splitFrames splits frames of a length byte and as many bytes. Zeros between frames are padding.
func splitFrames(data []byte, _ bool) (int, []byte, error) {
	switch {
	case data[0] == 0:
		return 1, nil, nil
	case data[0] == 0xff:
		return 0, nil, errors.New("invalid frame length")
	case len(data) < 1+int(data[0]):
		return 0, nil, nil
	}
	n := 1 + int(data[0])
	return n, data[1:n], nil
}

func TestFrames(t *testing.T) {
	f := newFixture(t, 0)
	addr, _ := f.tcp(tcpConfig(), func(_ context.Context, c *server.Conn) {
		for {
			frame, err := c.Next(splitFrames)
			if err != nil {
				fmt.Fprintf(c, "%t %v\n", pipeline.IsPermanent(err), err)
				if _, again := c.Next(splitFrames); again != err {
					t.Errorf("after %v: %v", err, again)
				}
				return
			}
			fmt.Fprintf(c, "%s\n", frame)
		}
	})
	c := f.connect(t, addr)
	c.send("\x03one\x00\x00\x05three\x00\x02t")
	c.expect("one", "three")
	c.send("w\x00\xff")
	c.expect("tw", "true invalid frame length", "")
	if f.refused(server.ReasonUndecodable) != 1 {
		t.Errorf("counted %v", f.refused(server.ReasonUndecodable))
	}
}

func TestTCPOverTLS(t *testing.T) {
	ca, files, pool, client := authority(t)
	var clockOffset atomic.Int64
	f := newFixture(t, 0)
	f.set.Env.Now = func() time.Time { return time.Now().Add(time.Duration(clockOffset.Load())) }
	cfg := tcpConfig()
	cfg.TLS = pipeline.Present(server.TLSConfig{CertFile: files.Cert, KeyFile: files.Key, ClientCAFile: files.CA,
		MinVersion: "1.2", ReloadInterval: pipeline.Duration(time.Minute)})
	addr, _ := f.tcp(cfg, respondToLines(size))
	request := func(certs ...tls.Certificate) (name, response string, err error) {
		c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: pool, ServerName: certstest.Host, Certificates: certs})
		if err != nil {
			return "", "", err
		}
		defer c.Close()
		if _, err := io.WriteString(c, "hello\n"); err != nil {
			return "", "", err
		}
		if err := c.CloseWrite(); err != nil {
			return "", "", err
		}
		b, err := io.ReadAll(c)
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName, string(b), err
	}
	if name, response, err := request(client); name != "before" || response != "5\n" || err != nil {
		t.Errorf("certificate %q, response %q, %v", name, response, err)
	}
	if _, response, err := request(); err == nil {
		t.Errorf("without a certificate: response %q", response)
	}
	plain := f.connect(t, addr)
	plain.send("hello\n")
	if got, _ := io.ReadAll(plain); slices.Contains(got, '5') {
		t.Errorf("plaintext request got %q", got)
	}
	ca.Issue(t, filepath.Dir(files.Cert), "after")
	clockOffset.Store(int64(2 * time.Minute))
	if name, _, err := request(client); name != "after" || err != nil {
		t.Errorf("certificate %q after the change, %v", name, err)
	}
}

func TestTCPConfigValidation(t *testing.T) {
	good := tcpConfig()
	if err := good.Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	for key, change := range map[string]func(*server.TCPConfig){
		"endpoint":         func(c *server.TCPConfig) { c.Endpoint = "" },
		"max_message_size": func(c *server.TCPConfig) { c.MaxMessageSize = 0 },
		"read_timeout":     func(c *server.TCPConfig) { c.ReadTimeout = 0 },
		"write_timeout":    func(c *server.TCPConfig) { c.WriteTimeout = 0 },
		"idle_timeout":     func(c *server.TCPConfig) { c.IdleTimeout = 0 },
		"max_connections":  func(c *server.TCPConfig) { c.MaxConnections = 0 },
	} {
		bad := tcpConfig()
		change(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "must be") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// FuzzSplitLines compares SplitLines with strings.Split.
func FuzzSplitLines(f *testing.F) {
	for _, s := range []string{"", "\n", "a\nb", "a\r\n\r\nb\r\n", "\r\r\n", "\xff\x00\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		parts := strings.Split(s, "\n")
		lines := bufio.NewScanner(strings.NewReader(s))
		lines.Buffer(nil, len(s)+1)
		lines.Split(server.SplitLines)
		for i := 0; lines.Scan(); i++ {
			if i >= len(parts)-1 || lines.Text() != strings.TrimSuffix(parts[i], "\r") {
				t.Fatalf("line %d of %q is %q", i, s, lines.Text())
			}
			parts[i] = "seen"
		}
		if n := len(parts) - 1; n > 0 && parts[n-1] != "seen" {
			t.Errorf("lines of %q are missing", s)
		}
	})
}

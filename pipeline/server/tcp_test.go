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

func (w *world) tcp(cfg server.TCPConfig, h func(context.Context, *server.Conn)) (addr string, stop func(context.Context) error) {
	w.t.Helper()
	s, err := server.NewTCP(w.set, "tcp", cfg, h)
	if err != nil {
		w.t.Fatal(err)
	}
	stop = w.run(s)
	return s.Addr(), stop
}

// answerLines is a handler that answers each line with what answer makes of it, and the end with its reason.
func answerLines(answer func(ctx context.Context, line string) string) func(context.Context, *server.Conn) {
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
			if _, err := fmt.Fprintln(c, answer(ctx, string(line))); err != nil {
				return
			}
		}
	}
}

func size(_ context.Context, line string) string { return fmt.Sprint(len(line)) }

// talker is a client.
type talker struct {
	net.Conn
	t  *testing.T
	in *bufio.Reader
}

func (w *world) talk(t *testing.T, addr string) *talker {
	t.Helper()
	c, err := w.dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &talker{c, t, bufio.NewReader(c)}
}

func (c *talker) say(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Error(err)
	}
}

// hear returns the next line of the server, or "" at the end.
func (c *talker) hear() string {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	if err != nil && err != io.EOF && err != io.ErrClosedPipe {
		c.t.Errorf("reading: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (c *talker) expect(want ...string) {
	c.t.Helper()
	for _, w := range want {
		if got := c.hear(); got != w && (w == "" || !strings.HasPrefix(got, w)) {
			c.t.Errorf("heard %q, want %q", got, w)
		}
	}
}

func TestLinesAreAnswered(t *testing.T) {
	w := newWorld(t, 1<<20)
	addr, stop := w.tcp(tcpConfig(), answerLines(size))
	c := w.talk(t, addr)
	c.say("one\r\n\nthree")
	c.expect("3", "0")
	c.say("!\n" + strings.Repeat("x", 60_000) + "\n")
	c.expect("6", "60000")
	if peak := w.set.Budget.Peak(); peak < 60_000 {
		t.Errorf("a line of 60000 bytes took %d of the budget", peak)
	}
	c.say("short\n")
	c.expect("5")
	if used := w.set.Budget.Used(); used > 8<<10 {
		t.Errorf("a connection that waits holds %d bytes", used)
	}
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.expect("")
	if err := stop(t.Context()); err != nil || w.set.Budget.Used() != 0 {
		t.Errorf("Stop: %v, %d bytes are held", err, w.set.Budget.Used())
	}
}

// The client goes on sending what nobody reads, and gets its answer all the same.
func TestTooLongALineIsAnswered(t *testing.T) {
	w := newWorld(t, 0)
	cfg := tcpConfig()
	cfg.MaxMessageSize = 5000
	addr, stop := w.tcp(cfg, answerLines(size))
	c := w.talk(t, addr)
	c.say(strings.Repeat("x", 4999) + "\n")
	c.expect("4999")
	c.say(strings.Repeat("x", 5000) + "\n" + strings.Repeat("more\n", 10_000))
	c.expect("413 the message is longer than max_message_size, which is 5000 bytes", "")
	c.Close()
	if err := stop(t.Context()); err != nil || w.refused(server.ReasonTooLarge) != 1 {
		t.Errorf("Stop: %v, counted %v", err, w.refused(server.ReasonTooLarge))
	}
}

func TestMessagesNeedBudget(t *testing.T) {
	w := newWorld(t, 64<<10) // a message may have a half
	addr, _ := w.tcp(tcpConfig(), answerLines(size))
	c := w.talk(t, addr)
	c.say("x\n")
	c.expect("1")
	others, err := w.set.Budget.Reserve(56 << 10)
	if err != nil {
		t.Fatal(err)
	}
	c.say(strings.Repeat("x", 5000) + "\n")
	c.expect("429 too many bytes in flight", "")
	others.Release()
	c = w.talk(t, addr)
	c.say(strings.Repeat("x", 32<<10))
	c.expect("413 the message is longer than max_message_size, which is 32768 bytes")
	if w.refused(server.ReasonOverBudget) != 1 {
		t.Errorf("counted %v", w.refused(server.ReasonOverBudget))
	}
}

func TestHalfALineIsNoLine(t *testing.T) {
	w := newWorld(t, 0)
	addr, _ := w.tcp(tcpConfig(), answerLines(size))
	c := w.talk(t, addr)
	c.say("one\ntw")
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.expect("3", "400 the message does not end: unexpected EOF", "")
	if w.refused(server.ReasonIncomplete) != 1 {
		t.Errorf("counted %v", w.refused(server.ReasonIncomplete))
	}
}

func TestSlowClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0).inMemory()
		cfg := tcpConfig()
		cfg.IdleTimeout, cfg.ReadTimeout = pipeline.Duration(time.Minute), pipeline.Duration(10*time.Second)
		addr, _ := w.tcp(cfg, answerLines(size))

		silent, start := w.talk(t, addr), time.Now()
		time.Sleep(30 * time.Second)
		silent.say("here\n")
		silent.expect("4", "")
		if d := time.Since(start); d != 90*time.Second {
			t.Errorf("a silent connection was closed after %v", d)
		}
		if n := w.metric("tracing_server_refused_requests_total", ""); n != 0 {
			t.Errorf("a connection without a message was counted %v times", n)
		}

		slow := w.talk(t, addr)
		start = time.Now()
		var sending sync.WaitGroup
		sending.Go(func() {
			for range 4 { // a byte now and then does not help
				slow.say("x")
				time.Sleep(3 * time.Second)
			}
		})
		defer sending.Wait()
		slow.expect("503 the message did not end within read_timeout", "")
		if d := time.Since(start); d != 10*time.Second || w.refused(server.ReasonIncomplete) != 1 {
			t.Errorf("refused after %v, counted %v", d, w.refused(server.ReasonIncomplete))
		}
	})
}

// A client that sends and does not read fills the buffers in between.
func TestClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0).inMemory()
		left := make(chan time.Time, 1)
		addr, _ := w.tcp(tcpConfig(), func(_ context.Context, c *server.Conn) {
			for {
				if _, err := c.Write(make([]byte, 1000)); err != nil {
					left <- time.Now()
					return
				}
			}
		})
		start := time.Now()
		w.talk(t, addr)
		if d := (<-left).Sub(start); d != tcpConfig().WriteTimeout.Std() {
			t.Errorf("the handler could not write for %v", d)
		}
	})
}

func TestTCPPanicEndsOneConnection(t *testing.T) {
	w := newWorld(t, 0)
	addr, _ := w.tcp(tcpConfig(), answerLines(func(_ context.Context, line string) string {
		if line == "bad" {
			panic("boom")
		}
		return line
	}))
	first, second := w.talk(t, addr), w.talk(t, addr)
	first.say("good\nbad\n")
	first.expect("good", "")
	second.say("good\n")
	second.expect("good")
	if n := w.metric("tracing_server_panics_total", ""); n != 1 {
		t.Errorf("counted %v panics", n)
	}
}

func TestTCPConnectionsAreCapped(t *testing.T) {
	w := newWorld(t, 0)
	cfg := tcpConfig()
	cfg.MaxConnections = 1
	addr, _ := w.tcp(cfg, answerLines(size))
	first := w.talk(t, addr)
	first.say("x\n")
	first.expect("1")
	if _, err := w.talk(t, addr).Read(make([]byte, 1)); err == nil {
		t.Error("the second connection was served")
	}
	if n := w.metric("tracing_server_refused_connections_total", ""); n != 1 {
		t.Errorf("counted %v", n)
	}
}

// Stop finds a connection that waits, one with a line in the handler and another behind it, and one in the middle of a line.
func TestTCPStopDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0).inMemory()
		leave := make(chan bool)
		addr, stop := w.tcp(tcpConfig(), answerLines(func(ctx context.Context, line string) string {
			if line == "wait" {
				<-leave
			}
			if ctx.Err() != nil {
				return "cut off"
			}
			return line
		}))
		idle, busy, half := w.talk(t, addr), w.talk(t, addr), w.talk(t, addr)
		idle.say("hello\n")
		idle.expect("hello")
		busy.say("wait\nnext\n")
		half.say("hel")
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
		if n := w.refused(server.ReasonStopping); n != 2 {
			t.Errorf("counted %v", n)
		}
	})
}

func TestTCPStopCutsWhenItsTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0).inMemory()
		addr, stop := w.tcp(tcpConfig(), answerLines(func(ctx context.Context, _ string) string {
			<-ctx.Done()
			return "too late"
		}))
		c := w.talk(t, addr)
		c.say("x\n")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := stop(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "tcp: 1 connections were cut off") {
			t.Errorf("Stop: %v", err)
		}
		c.expect("")
	})
}

// exhausted is a listener of a process that has no file descriptor left, for a while.
type exhausted struct {
	net.Listener
	failures atomic.Int32
}

func (l *exhausted) Accept() (net.Conn, error) {
	if l.failures.Add(-1) >= 0 {
		return nil, errors.New("too many open files")
	}
	return l.Listener.Accept()
}

func TestListenerOutlivesFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0).inMemory()
		w.set.Env.Listen = func(context.Context, string, string) (net.Listener, error) {
			l := &exhausted{Listener: w.mem}
			l.failures.Store(3)
			return l, nil
		}
		addr, _ := w.tcp(tcpConfig(), answerLines(size))
		c := w.talk(t, addr)
		c.say("x\n")
		c.expect("1")
	})
}

func TestTCPStopWithoutTimeOrConnections(t *testing.T) {
	for range 20 {
		w := newWorld(t, 0)
		_, stop := w.tcp(tcpConfig(), answerLines(size))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := stop(ctx); err != nil {
			t.Errorf("Stop: %v", err)
		}
	}
}

// A protocol of frames: a length, and as many bytes. Zeros in between are padding.
func splitFrames(data []byte, _ bool) (int, []byte, error) {
	switch {
	case data[0] == 0:
		return 1, nil, nil
	case data[0] == 0xff:
		return 0, nil, errors.New("no frame is so long")
	case len(data) < 1+int(data[0]):
		return 0, nil, nil
	}
	n := 1 + int(data[0])
	return n, data[1:n], nil
}

func TestFrames(t *testing.T) {
	w := newWorld(t, 0)
	addr, _ := w.tcp(tcpConfig(), func(_ context.Context, c *server.Conn) {
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
	c := w.talk(t, addr)
	c.say("\x03one\x00\x00\x05three\x00\x02t")
	c.expect("one", "three")
	c.say("w\x00\xff")
	c.expect("tw", "true no frame is so long", "")
	if w.refused(server.ReasonUndecodable) != 1 {
		t.Errorf("counted %v", w.refused(server.ReasonUndecodable))
	}
}

func TestTCPOverTLS(t *testing.T) {
	ca, files, pool, client := authority(t)
	var later atomic.Int64
	w := newWorld(t, 0)
	w.set.Env.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	cfg := tcpConfig()
	cfg.TLS = pipeline.Present(server.TLSConfig{CertFile: files.Cert, KeyFile: files.Key, ClientCAFile: files.CA,
		MinVersion: "1.2", ReloadInterval: pipeline.Duration(time.Minute)})
	addr, _ := w.tcp(cfg, answerLines(size))
	serve := func(certs ...tls.Certificate) (name, answer string, err error) {
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
	if name, answer, err := serve(client); name != "before" || answer != "5\n" || err != nil {
		t.Errorf("certificate %q, answer %q, %v", name, answer, err)
	}
	if _, answer, err := serve(); err == nil {
		t.Errorf("without a certificate: answer %q", answer)
	}
	plain := w.talk(t, addr)
	plain.say("hello\n")
	if got, _ := io.ReadAll(plain); slices.Contains(got, '5') {
		t.Errorf("plain text was served: %q", got)
	}
	ca.Issue(t, filepath.Dir(files.Cert), "after")
	later.Store(int64(2 * time.Minute))
	if name, _, err := serve(client); name != "after" || err != nil {
		t.Errorf("certificate %q after the change, %v", name, err)
	}
}

func TestTCPConfigIsChecked(t *testing.T) {
	good := tcpConfig()
	if err := good.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for key, spoil := range map[string]func(*server.TCPConfig){
		"endpoint":         func(c *server.TCPConfig) { c.Endpoint = "" },
		"max_message_size": func(c *server.TCPConfig) { c.MaxMessageSize = 0 },
		"read_timeout":     func(c *server.TCPConfig) { c.ReadTimeout = 0 },
		"write_timeout":    func(c *server.TCPConfig) { c.WriteTimeout = 0 },
		"idle_timeout":     func(c *server.TCPConfig) { c.IdleTimeout = 0 },
		"max_connections":  func(c *server.TCPConfig) { c.MaxConnections = 0 },
	} {
		bad := tcpConfig()
		spoil(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "must be") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// FuzzSplitLines: lines are what is in front of each end of a line, and nothing else is lost or added.
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

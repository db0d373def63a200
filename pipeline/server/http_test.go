package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

func TestListenErrorHasAHint(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	cfg := httpConfig()
	cfg.Endpoint = pipeline.Endpoint(ln.Addr().String())
	s, err := server.NewHTTP(newFixture(t, 0).set, "protocols.http", cfg, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	err = s.Start(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "protocols.http.endpoint: cannot listen on "+ln.Addr().String()) ||
		!strings.Contains(err.Error(), "another process uses this port") {
		t.Errorf("got %v", err)
	}
	if s.Addr() != "" {
		t.Errorf("Addr of a server that failed to start: %s", s.Addr())
	}
}

func TestHandlerPanics(t *testing.T) {
	f := newFixture(t, 0)
	clients := f.clientsOfPanics()
	_, c, _ := f.http(httpConfig(), func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			fmt.Fprint(rw, "half")
			http.NewResponseController(rw).Flush()
		}
		panic("boom")
	})
	for range 2 {
		if code, _ := post(t, c, "", strings.NewReader("x")); code != http.StatusInternalServerError {
			t.Errorf("got %d", code)
		}
	}
	resp, err := c.Get("http://server/late")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("partial response was not aborted")
	}
	if n := f.metric("tracing_server_panics_total", ""); n != 3 {
		t.Errorf("counted %v panics", n)
	}
	if n := clients(); n != 3 {
		t.Errorf("%d log lines name the client", n)
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0).inMemory()
		cfg := httpConfig()
		cfg.MaxConnections = 2
		_, c, _ := f.http(cfg, echo(readBody))
		dial := func() net.Conn {
			conn, err := f.dial(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			return conn
		}
		first, _ := dial(), dial()
		synctest.Wait()
		if n := f.metric("tracing_server_open_connections", ""); n != 2 {
			t.Errorf("%v open connections, want 2", n)
		}
		if _, err := dial().Read(make([]byte, 1)); err == nil {
			t.Error("the third connection was served")
		}
		if n := f.metric("tracing_server_refused_connections_total", ""); n != 1 {
			t.Errorf("counted %v refused connections, want 1", n)
		}
		first.Close()
		synctest.Wait()
		if n := f.metric("tracing_server_open_connections", ""); n != 1 {
			t.Errorf("%v open connections after one was closed, want 1", n)
		}
		if code, _ := post(t, c, "", nil); code != 200 {
			t.Errorf("status %d after a connection was closed", code)
		}
	})
}

// Stop with an active request, an idle connection, and a connection without a request.
func TestStopDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0).inMemory()
		entered, leave := make(chan bool, 1), make(chan bool)
		_, c, stop := f.http(httpConfig(), func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				entered <- true
				<-leave
			}
			fmt.Fprint(rw, "done")
		})
		post(t, c, "", nil)
		fresh, err := f.dial(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		answers := make(chan string, 1)
		go func() {
			resp, err := c.Get("http://server/wait")
			if err != nil {
				answers <- err.Error()
				return
			}
			defer resp.Body.Close()
			b, _ := io.ReadAll(resp.Body)
			answers <- string(b)
		}()
		<-entered
		start := time.Now()
		stopped := make(chan error, 1)
		go func() { stopped <- stop(t.Context()) }()
		synctest.Wait()
		if _, err := fresh.Read(make([]byte, 1)); err == nil {
			t.Error("the unused connection is still open")
		}
		time.Sleep(2 * time.Second)
		close(leave)
		if got := <-answers; got != "done" {
			t.Errorf("response of the active request: %q", got)
		}
		if err := <-stopped; err != nil {
			t.Errorf("Stop: %v", err)
		}
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("Stop took %v after the last response", d-2*time.Second)
		}
	})
}

func TestStopAbortsAtDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0).inMemory()
		entered := make(chan bool, 1)
		_, c, stop := f.http(httpConfig(), func(_ http.ResponseWriter, r *http.Request) {
			entered <- true
			<-r.Context().Done()
		})
		failed := make(chan error, 1)
		go func() {
			_, err := c.Get("http://server/")
			failed <- err
		}()
		<-entered
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := stop(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 requests aborted") {
			t.Errorf("Stop: %v", err)
		}
		if err := <-failed; err == nil {
			t.Error("the client got a response")
		}
	})
}

func TestSlowBodyIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0).inMemory()
		_, _, _ = f.http(httpConfig(), echo(readBody))
		conn, err := f.dial(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nfew")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusServiceUnavailable || f.refused(server.ReasonIncomplete) != 1 {
			t.Errorf("got %d, counted %v", resp.StatusCode, f.refused(server.ReasonIncomplete))
		}
		if f.set.Budget.Used() != 0 {
			t.Error("budget is still reserved")
		}
	})
}

// net/http reads from the connection while the handler works, to detect a disconnected client.
func TestReadTimeoutDoesNotApplyToTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0).inMemory()
		cfg := httpConfig()
		_, c, _ := f.http(cfg, func(rw http.ResponseWriter, r *http.Request) {
			if _, err := server.ReadBody(r); err != nil {
				t.Error(err)
			}
			select {
			case <-r.Context().Done():
				t.Error("context canceled although the client waits")
			case <-time.After(cfg.ReadTimeout.Std() + 5*time.Second):
			}
		})
		if code, _ := post(t, c, "", strings.NewReader("spans")); code != 200 {
			t.Errorf("got %d", code)
		}
	})
}

func TestDisconnectCancelsTheHandler(t *testing.T) {
	f := newFixture(t, 0)
	entered, gone := make(chan bool), make(chan error, 1)
	_, c, _ := f.http(httpConfig(), func(_ http.ResponseWriter, r *http.Request) {
		server.ReadBody(r)
		entered <- true
		<-r.Context().Done()
		gone <- r.Context().Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://server/", strings.NewReader("spans"))
	if _, err := c.Do(req); !errors.Is(err, context.Canceled) {
		t.Errorf("client: %v", err)
	}
	if err := <-gone; err == nil {
		t.Error("context not canceled")
	}
}

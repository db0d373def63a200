package admin

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

// oneConn is a listener that accepts one connection.
type oneConn struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error {
	close(l.closed)
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// Requests to routes of components may take operation_timeout, although read_timeout and
// write_timeout are shorter. Then their context ends, and their answer still arrives.
func TestOperationTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		want  string
	}{
		"in time":  {9 * time.Minute, "done after 9m0s: <nil>"},
		"too slow": {time.Hour, "done after 10m0s: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body) //nolint:errcheck // a test
					start := time.Now()
					select {
					case <-time.After(c.takes):
					case <-r.Context().Done():
					}
					err := "<nil>"
					if r.Context().Err() != nil {
						err = r.Context().Err().Error()
					}
					io.WriteString(w, "done after "+time.Since(start).String()+": "+err) //nolint:errcheck // a test
				})
				p := &process{registry: prometheus.NewRegistry(), routes: map[string]http.Handler{"exporter disk": slow}}
				conn, accepted := net.Pipe() // has deadlines
				ln := &oneConn{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
				ln.conn <- accepted
				env := pipeline.SystemEnv()
				env.Listen = func(context.Context, string, string) (net.Listener, error) { return ln, nil }
				a, err := build(pipeline.Settings{ID: pipeline.ID{Type: "admin"}, Logger: zap.NewNop(), Metrics: p.registry, Env: env,
					Budget: pipeline.NewBudget(0), Process: p}, defaults())
				if err != nil {
					t.Fatal(err)
				}
				if err := a.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				defer a.Stop(context.Background()) //nolint:errcheck // a test
				defer conn.Close()                 //nolint:errcheck // a test
				const request = "POST /exporters/disk/delete HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
				if _, err := io.WriteString(conn, request); err != nil {
					t.Fatal(err)
				}
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatalf("no response: %v", err)
				}
				body, err := io.ReadAll(resp.Body)
				if err != nil || !strings.HasPrefix(string(body), c.want) {
					t.Errorf("answer %q, error %v, want %q", body, err, c.want)
				}
			})
		})
	}
}

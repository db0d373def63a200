package delivery_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// A client that has sent half a request delays neither the reload nor other clients, and its
// request is accepted by the previous components, also after several reloads and if the processors
// change.
func TestReloadWithSlowRequests(t *testing.T) {
	for name, processors := range map[string]string{"listener": "", "listener and processor": "resource_tags, batch"} {
		t.Run(name, func(t *testing.T) {
			s := newSockets(t)
			p := inprocess.StartYAML(t, s.yaml(0, processors))
			var slow []*slowPost
			for generation := 1; generation <= 3; generation++ {
				slow = append(slow, startSlowPost(t, s.otlp, "/v1/traces", jsonSpan(fmt.Sprintf("%032x", generation))))
				done := become(t, p, s.yaml(generation, processors))
				untilGeneration(t, generation, s.post(fastTrace))
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			for i, r := range slow {
				r.finish()
				checkStored(t, s, fmt.Sprintf("%032x", i+1), 1)
			}
			http.DefaultClient.CloseIdleConnections()
		})
	}
}

// The process stops while requests of earlier configurations are unfinished: they are accepted.
func TestStopWithRequestsOfEarlierConfigurations(t *testing.T) {
	s := newSockets(t)
	p := inprocess.StartYAML(t, s.yaml(0, "resource_tags"))
	slow := startSlowPost(t, s.otlp, "/v1/traces", jsonSpan(slowTrace))
	untilGeneration(t, 0, s.post(fastTrace)) // connections are accepted in order, so the slow one is
	if err := <-become(t, p, s.yaml(1, "resource_tags")); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- p.Stop() }()
	harness.Poll(t, "the listener to close", func() bool {
		conn, err := net.Dial("tcp", s.otlp)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	slow.finish()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	inprocess.StartYAML(t, s.yaml(1, "resource_tags"))
	checkStored(t, s, slowTrace, 1)
	http.DefaultClient.CloseIdleConnections()
}

// A client that reads the response of a query slowly delays neither the reload nor other clients,
// and gets the whole response.
func TestReloadWithSlowReader(t *testing.T) {
	s := newSockets(t)
	p := inprocess.StartYAML(t, s.yaml(0, ""))
	const spans = 40_000
	for range 4 {
		if status, answer := p.PostOTLP("application/json", manySpans(slowTrace, spans/4)); status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
	}
	conn, err := net.Dial("tcp", s.query)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(256 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET /api/traces/%s HTTP/1.1\r\nHost: %s\r\n\r\n", slowTrace, s.query); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil) // the rest of the response waits for the test
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	done := become(t, p, s.yaml(1, ""))
	untilGeneration(t, 1, func(c *http.Client) (*http.Response, error) { return c.Get("http://" + s.query + "/api/services") })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if got := bytes.Count(body, []byte(`"spanID"`)); err != nil || got < spans {
		t.Errorf("read %d bytes with %d spans: %v", len(body), got, err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// Clients with open connections are answered during all reloads, and move to the new listener.
func TestReloadKeepsConnectionsServed(t *testing.T) {
	s := newSockets(t)
	p := inprocess.StartYAML(t, s.yaml(0, "resource_tags"))
	startSlowPost(t, s.otlp, "/v1/traces", jsonSpan(slowTrace))
	client := &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()
	for generation := 1; generation <= 10; generation++ {
		done := become(t, p, s.yaml(generation, "resource_tags"))
		for answered := ""; answered != fmt.Sprint(generation); {
			resp, err := s.post(fastTrace)(client)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%s %v", resp.Status, err)
			}
			answered = resp.Header.Get("X-Generation")
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// Calls over gRPC succeed during all reloads, also one that has sent half of its message.
func TestReloadKeepsCalls(t *testing.T) {
	s := newSockets(t)
	p := inprocess.StartYAML(t, s.yaml(0, "resource_tags"))
	slow := startSlowCall(t, s.grpc, oneSpan(t, slowTrace))
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		conn, err := grpc.NewClient("passthrough:///"+s.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDisableRetry())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := conn.Invoke(t.Context(), exportMethod, oneSpan(t, fastTrace), nil, grpc.ForceCodecV2(harness.RawCodec{})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for generation := 1; generation <= 20; generation++ {
		if err := <-become(t, p, s.yaml(generation, "resource_tags")); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	clients.Wait()
	slow()
	checkStored(t, s, slowTrace, 1)
	http.DefaultClient.CloseIdleConnections()
}

// No datagram is lost while the listener for UDP is replaced.
func TestReloadKeepsDatagrams(t *testing.T) {
	s := newSockets(t)
	p := inprocess.StartYAML(t, s.yaml(0, ""))
	conn, err := net.Dial("udp", s.udp)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(t.Context())
	span := &jaeger.Span{TraceIdLow: 1, SpanId: 2, OperationName: "name", Flags: 1, StartTime: time.Now().UnixMicro(), Duration: 1}
	datagram := harness.Datagram(t, &jaeger.Batch{Process: &jaeger.Process{ServiceName: "service"}, Spans: []*jaeger.Span{span}})
	sent := make(chan int, 1)
	go func() {
		n := 0
		defer func() { sent <- n }()
		for ; ctx.Err() == nil; n++ {
			if _, err := conn.Write(datagram); err != nil {
				t.Errorf("datagram %d: %v", n, err)
			}
			time.Sleep(time.Millisecond)
		}
	}()
	for generation := 1; generation <= 20; generation++ {
		if err := <-become(t, p, s.yaml(generation, "")); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	n := <-sent
	harness.Poll(t, "all datagrams", func() bool {
		return p.Sum("tracing_pipeline_spans_total", "component=thriftudp", "outcome=accepted") >= float64(n)
	})
	if got := p.Sum("tracing_pipeline_spans_total", "component=thriftudp", "outcome=received"); got != float64(n) {
		t.Errorf("received %v of %d", got, n)
	}
}

// A reload that fails leaves the listeners and connections of the running configuration alone.
func TestReloadThatFailsKeepsSockets(t *testing.T) {
	s := newSockets(t)
	p := inprocess.StartYAML(t, s.yaml(0, "resource_tags"))
	slow := startSlowPost(t, s.otlp, "/v1/traces", jsonSpan(slowTrace))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	broken := *s
	broken.zipkin = taken.Addr().String()
	done := become(t, p, broken.yaml(1, "resource_tags"))
	for end := false; !end; {
		untilAnswered(t, s)
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), "cannot listen on "+broken.zipkin) {
				t.Errorf("reload: %v", err)
			}
			end = true
		default:
		}
	}
	slow.finish()
	untilAnswered(t, s)
	checkStored(t, s, slowTrace, 1)
	if err := <-become(t, p, s.yaml(2, "resource_tags")); err != nil {
		t.Error(err)
	}
	untilGeneration(t, 2, s.post(fastTrace))
	http.DefaultClient.CloseIdleConnections()
}

func untilAnswered(t *testing.T, s *sockets) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	resp, err := s.post(fastTrace)(client)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if g := resp.Header.Get("X-Generation"); resp.StatusCode != http.StatusOK || g != "0" && g != "1" {
		t.Fatalf("%s from generation %q", resp.Status, g)
	}
}

// A listener that moves to another address opens it before the previous one is closed, even if the
// new one includes the previous one.
func TestReloadMovesListener(t *testing.T) {
	s := newSockets(t)
	p := inprocess.StartYAML(t, s.yaml(0, ""))
	slow := startSlowPost(t, s.otlp, "/v1/traces", jsonSpan(slowTrace))
	_, port, _ := net.SplitHostPort(s.otlp)
	wide := *s
	wide.otlp = "0.0.0.0:" + port
	if err := <-become(t, p, wide.yaml(1, "")); err != nil {
		t.Fatal(err)
	}
	untilGeneration(t, 1, s.post(fastTrace))
	slow.finish()
	other := newSockets(t)
	other.dir, other.query = s.dir, s.query
	if err := <-become(t, p, other.yaml(2, "")); err != nil {
		t.Fatal(err)
	}
	untilGeneration(t, 2, other.post(fastTrace))
	harness.Poll(t, "the previous port to close", func() bool {
		_, err := net.Dial("tcp", s.otlp)
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	checkStored(t, s, slowTrace, 1)
	http.DefaultClient.CloseIdleConnections()
}

// A query extension whose store changes stops before its replacement starts. Its clients wait, but
// none is refused.
func TestReloadOfStoreRefusesNoQuery(t *testing.T) {
	s := newSockets(t)
	p := inprocess.StartYAML(t, s.yaml(0, ""))
	services := func(c *http.Client) (*http.Response, error) { return c.Get("http://" + s.query + "/api/services") }
	for generation := 1; generation <= 5; generation++ {
		cache := fmt.Sprintf("disk: {reserve: 0, cache: %dMiB}", generation)
		done := become(t, p, strings.Replace(s.yaml(generation, ""), "disk: {reserve: 0}", cache, 1))
		untilGeneration(t, generation, services)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

package conformance_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
)

// smallMemory is what a container of 192 MiB allows the program, in MiB.
const smallMemory = 172

// TestSmallContainer runs the preset all-in-one with the memory of a container of 192 MiB, while
// clients send gzip bombs and large bodies that do not end, keep many connections open, and
// run expensive searches. The defaults fit the memory, so the process stays within it, and a
// well-behaved client is served.
func TestSmallContainer(t *testing.T) {
	harness.SkipIfShort(t)
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	t.Setenv("GOMEMLIMIT", fmt.Sprint(smallMemory, "MiB"))
	p := harness.RunAllInOne(t, t.TempDir())
	p.WatchMemory()
	served := func() {
		t.Helper()
		requests := bench.New(1, time.Now()).Requests(100_000, 500)
		r, err := load.Run(t.Context(), load.Options{Target: p.OTLPGRPC(), Connections: 1, InFlight: 1, Retry: time.Minute}, requests)
		if err != nil || r.Acked != r.Spans {
			t.Errorf("well-behaved client: %+v, %v", r, err)
		}
	}
	served()
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() { bomb(t, "http://"+p.OTLPHTTP()+"/v1/traces") })
	}
	for range 50 {
		wg.Go(func() { slowBody(t, p.OTLPHTTP()) })
	}
	for range 8 {
		wg.Go(func() { search(t, p.Address("query", "http")) })
	}
	wg.Wait()
	for _, conn := range idleConnections(t, 1500, p.OTLPHTTP(), p.OTLPGRPC()) {
		defer conn.Close()
	}
	// The process accepts a connection some time after the client has it.
	harness.Poll(t, "a connection is refused", func() bool {
		for name, n := range harness.Metrics(t, p.AdminURL()) {
			if strings.HasPrefix(name, "tracing_server_refused_connections_total") && n > 0 {
				return true
			}
		}
		return false
	})
	if peak := p.PeakMemory(); peak > smallMemory {
		t.Errorf("peak memory %d MiB, want at most %d", peak, smallMemory)
	} else {
		t.Logf("peak memory %d MiB of at most %d", peak, smallMemory)
	}
	for _, line := range p.LogLines() {
		if strings.Contains(fmt.Sprint(line["msg"]), "exceed") {
			t.Errorf("the defaults do not fit the memory: %v", line)
		}
	}
}

// bomb sends 16 MiB of zeros, compressed, several times.
func bomb(t *testing.T, url string) {
	body := gzipped(make([]byte, 16<<20))
	for range 8 {
		sendHostile(t, url, "application/x-protobuf", "gzip", body)
	}
}

// slowBody sends all but the end of a large body and waits for the response.
func slowBody(t *testing.T, address string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	const size = 11 << 20
	fmt.Fprintf(conn, "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: %d\r\n\r\n", size)
	part := make([]byte, 64<<10)
	for sent := 0; sent < size-len(part); sent += len(part) {
		if _, err := conn.Write(part); err != nil {
			return // refused
		}
	}
	conn.SetReadDeadline(time.Now().Add(time.Second))
	io.Copy(io.Discard, conn) //nolint:errcheck // the response does not matter
}

// search runs a search that returns much, several times.
func search(t *testing.T, address string) {
	for range 5 {
		res, err := http.Get("http://" + address + "/api/traces?service=checkout&limit=10000")
		if err != nil {
			t.Error(err)
			return
		}
		io.Copy(io.Discard, res.Body) //nolint:errcheck // it may be cut
		res.Body.Close()
	}
}

// idleConnections opens connections. The process closes connections beyond its limit.
func idleConnections(t *testing.T, n int, addresses ...string) (conns []net.Conn) {
	for i := range n {
		conn, err := net.Dial("tcp", addresses[i%len(addresses)])
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	return conns
}

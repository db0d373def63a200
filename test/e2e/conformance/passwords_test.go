package conformance_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/tracing-backend/tracing/test/harness"
)

const passwordsConfig = `
receivers: {otlp: {protocols: {
  grpc: {endpoint: "localhost:0", auth: &auth {htpasswd_file: %[1]q,
    password_checks: {min_delay: 1h, max_delay: 1h, wait_timeout: 1m}}, trusted_proxies: [127.0.0.1, "::1"]},
  http: {endpoint: "localhost:0", auth: *auth, trusted_proxies: [127.0.0.1, "::1"]}}}}
exporters: {nop: }
extensions: {admin: {endpoint: "localhost:0"}}
service:
  extensions: [admin]
  pipelines: {traces: {receivers: [otlp], exporters: [nop]}}
`

const exportMethod = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

// maxFloodChecks is the maximum number of passwords of one client address that are compared:
// allowed_failures, one more, and those that waited at the same time.
const maxFloodChecks = 5 + 4

// logins sends requests with passwords to one listener and returns HTTP status codes. The header
// X-Forwarded-For contains the address of the client.
type logins struct {
	send func(t *testing.T, header ...string) int
}

func (l logins) login(t *testing.T, address, user, password string) int {
	t.Helper()
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	return l.send(t, "authorization", basic, "x-forwarded-for", address)
}

func httpLogins(address string) logins {
	return logins{func(t *testing.T, header ...string) int {
		code, _ := harness.Request(t, http.MethodPost, "http://"+address+"/v1/traces", "{}", header...)
		return code
	}}
}

// grpcLogins uses one connection for all requests.
func grpcLogins(t *testing.T, address string) logins {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() }) //nolint:errcheck // the test has ended
	return logins{func(t *testing.T, header ...string) int {
		ctx := metadata.AppendToOutgoingContext(t.Context(), header...)
		err := conn.Invoke(ctx, exportMethod, &emptypb.Empty{}, &emptypb.Empty{})
		code, ok := map[codes.Code]int{codes.OK: 200, codes.Unauthenticated: 401, codes.ResourceExhausted: 429,
			codes.Unavailable: 503}[status.Code(err)]
		if !ok {
			t.Errorf("unexpected error: %v", err)
		}
		return code
	}}
}

// users writes an htpasswd file with the users ann and bob, whose passwords are their names.
func users(t *testing.T, cost int) string {
	t.Helper()
	var content []byte
	for _, name := range []string{"ann", "bob"} {
		hash, err := bcrypt.GenerateFromPassword([]byte(name), cost)
		if err != nil {
			t.Fatal(err)
		}
		content = fmt.Appendf(content, "%s:%s\n", name, hash)
	}
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// flood sends wrong passwords from concurrent clients, calls during when the first has been
// refused, and returns how often each status was answered.
func (l logins) flood(t *testing.T, n int, address func(i int) string, during func()) map[int]int {
	var mu sync.Mutex
	var wg sync.WaitGroup
	answers := map[int]int{}
	refused, next := make(chan struct{}, 1), make(chan int)
	for range min(n, 200) {
		wg.Go(func() {
			for i := range next {
				code := l.login(t, address(i), "ann", fmt.Sprint("wrong", i))
				mu.Lock()
				answers[code]++
				mu.Unlock()
				select {
				case refused <- struct{}{}:
				default:
				}
			}
		})
	}
	wg.Go(func() {
		defer close(next)
		for i := range n {
			next <- i
		}
	})
	<-refused
	during()
	wg.Wait()
	return answers
}

// TestWrongPasswords floods the receiver with wrong passwords from one address. Users of other
// addresses are served, and only a few of the wrong passwords are compared.
func TestWrongPasswords(t *testing.T) {
	floods := []int{200, 13_000}
	if testing.Short() {
		floods = floods[:1]
	}
	file := users(t, bcrypt.DefaultCost)
	for _, n := range floods {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			p := harness.RunYAML(t, fmt.Sprintf(passwordsConfig, file))
			p.AwaitReady()
			for listener, l := range map[string]logins{"http": httpLogins(p.OTLPHTTP()), "grpc": grpcLogins(t, p.OTLPGRPC())} {
				if code := l.login(t, "192.0.2.1", "ann", "ann"); code != 200 {
					t.Fatalf("%s: %d before the flood", listener, code)
				}
				answers := l.flood(t, n, func(int) string { return "192.0.2.66" }, func() {
					if code := l.login(t, "192.0.2.66", "ann", "ann"); code != 200 {
						t.Errorf("%s: proven login: %d", listener, code)
					}
					if code := l.login(t, "192.0.2.2", "bob", "bob"); code != 200 {
						t.Errorf("%s: new login of another address: %d", listener, code)
					}
				})
				for range maxFloodChecks + 1 { // the last ones are delayed, whatever the flood was
					answers[l.login(t, "192.0.2.66", "unknown", "wrong")]++
				}
				if answers[401] > maxFloodChecks || answers[401]+answers[429] != n+maxFloodChecks+1 {
					t.Errorf("%s: answers %v, want at most %d times 401, otherwise 429", listener, answers, maxFloodChecks)
				}
				m := harness.Metrics(t, p.AdminURL())
				series := func(name, label string) float64 {
					return m[fmt.Sprintf(`%s{component="otlp",kind="receiver",listener="protocols.%s",%s}`, name, listener, label)]
				}
				if got := series("tracing_server_password_checks_total", `result="mismatch"`); int(got) != answers[401] {
					t.Errorf("%s: %v mismatches counted, %d answered", listener, got, answers[401])
				}
				delayed, limited := series("tracing_server_refused_requests_total", `reason="password_delay"`),
					series("tracing_server_refused_requests_total", `reason="password_limit"`)
				if int(delayed+limited) != answers[429] || delayed == 0 {
					t.Errorf("%s: %v delayed and %v limited requests counted, %d answered", listener, delayed, limited, answers[429])
				}
			}
			if code := p.Terminate(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// TestStopDuringWrongPasswords stops the program while the queue of comparisons is full. Requests
// that wait are refused immediately; only comparisons that run may end.
func TestStopDuringWrongPasswords(t *testing.T) {
	p := harness.RunYAML(t, fmt.Sprintf(passwordsConfig, users(t, 13)))
	p.AwaitReady()
	l, admin := httpLogins(p.OTLPHTTP()), p.AdminURL()
	const n = 64 // max_waiting
	var wg sync.WaitGroup
	answers := make(chan int, n)
	for i := range n {
		wg.Go(func() { answers <- l.login(t, fmt.Sprint("192.0.2.", i), "ann", "wrong") })
	}
	// The listener must have accepted all connections: closing it resets the others.
	harness.Poll(t, "a full queue", func() bool {
		m, labels := harness.Metrics(t, admin), `component="otlp",kind="receiver",listener="protocols.http"`
		return m["tracing_server_password_checks_waiting{"+labels+"}"]+
			m["tracing_server_password_checks_total{"+labels+`,result="mismatch"}`] >= n
	})
	p.Signal(syscall.SIGTERM)
	wg.Wait()
	if code := p.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	close(answers)
	counts := map[int]int{}
	for code := range answers {
		counts[code]++
	}
	if counts[503] < n/4 || counts[401]+counts[503] != n {
		t.Errorf("answers %v, want 503 for those that waited", counts)
	}
}

// TestDisconnectedLoginsAreNotCompared disconnects clients whose passwords wait for a comparison.
func TestDisconnectedLoginsAreNotCompared(t *testing.T) {
	p := harness.RunYAML(t, fmt.Sprintf(passwordsConfig, users(t, 12)))
	p.AwaitReady()
	l, admin := grpcLogins(t, p.OTLPGRPC()), p.AdminURL()
	conn, err := grpc.NewClient(p.OTLPGRPC(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			md := metadata.AppendToOutgoingContext(ctx, "authorization", "Basic eDp5", "x-forwarded-for", fmt.Sprint("192.0.2.", i))
			conn.Invoke(md, exportMethod, &emptypb.Empty{}, &emptypb.Empty{}) //nolint:errcheck // disconnects
		})
	}
	metric := func(name, label string) float64 {
		return harness.Metrics(t, admin)[fmt.Sprintf(`%s{component="otlp",kind="receiver",listener="protocols.grpc"%s}`, name, label)]
	}
	harness.Poll(t, "a queue", func() bool { return metric("tracing_server_password_checks_waiting", "") > 20 })
	conn.Close() //nolint:errcheck // disconnects
	wg.Wait()
	if code := l.login(t, "192.0.2.100", "bob", "bob"); code != 200 {
		t.Errorf("%d", code)
	}
	harness.Poll(t, "canceled comparisons", func() bool {
		return metric("tracing_server_password_checks_total", `,result="canceled"`) >= 10
	})
}

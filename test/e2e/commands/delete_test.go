package commands_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// TestDeleteThroughTheAdminPort deletes from the running program with its own command: what was deleted is gone at once and after a kill, what
// is sent again is there, and without allow_delete nothing goes.
func TestDeleteThroughTheAdminPort(t *testing.T) {
	path, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var p *harness.Process
	open := func(allow string) {
		args := []string{"all-in-one", "--set", "service::data_dir=" + dir, "--set", "exporters::disk::reserve=0",
			"--set", "exporters::disk::allow_delete=" + allow}
		for _, s := range harness.FreePorts {
			args = append(args, "--set", s)
		}
		p = harness.Run(t, args...)
		p.Await("msg", "Health Check state change", "status", "ready")
	}
	const resource = `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"%s"}}]},"scopeSpans":[{"spans":[` +
		`{"traceId":"%032d","spanId":"00000000000000%02d","name":"op","startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000000001000"}]}]}]}`
	send := func(trace int, service string) {
		t.Helper()
		body := fmt.Sprintf(resource, service, trace, trace)
		resp, err := http.Post("http://"+p.Address("otlp", "protocols.http")+"/v1/traces", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			t.Fatalf("sending: %s", resp.Status)
		}
	}
	check := func(when string, traces map[int]bool, services string) {
		t.Helper()
		query := "http://" + p.Address("query", "http")
		for trace, want := range traces {
			if got := len(harness.NewLedger().Fetch(t, query, fmt.Sprint(trace))); got > 0 != want {
				t.Errorf("%s: trace %d has %d spans", when, trace, got)
			}
		}
		resp, err := http.Get(query + "/api/services")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(body), services) {
			t.Errorf("%s: services %s, %v, want %s", when, body, err, services)
		}
	}
	erase := func(want string, args ...string) {
		t.Helper()
		args = append([]string{"delete", "--yes", "--admin", "http://" + p.Address("admin", "http")}, args...)
		if out, _ := exec.Command(path, args...).CombinedOutput(); !bytes.Contains(out, []byte(want)) {
			t.Errorf("tracing %q: %s, want %s", args, out, want)
		}
	}
	kill := func() {
		p.Kill()
	}

	open("true")
	for trace := 1; trace <= 3; trace++ {
		send(trace, []string{"", "cart", "shop", "shop"}[trace])
	}
	check("sent", map[int]bool{1: true, 2: true, 3: true}, `["cart","shop"]`)
	erase("1 spans deleted\n", "--trace", "2")
	erase("1 spans deleted\n", "--service", "cart", "--to", "2023-11-14T22:13:20Z")
	erase("0 spans deleted\n", "--service", "cart")
	left := map[int]bool{1: false, 2: false, 3: true}
	check("deleted", left, `["shop"]`)
	kill()
	open("false")
	check("after a kill", left, `["shop"]`)
	erase("403 Forbidden: deleting spans is not allowed: set allow_delete: true", "--trace", "3")
	send(1, "cart")
	check("sent again", map[int]bool{1: true, 2: false, 3: true}, `["cart","shop"]`)
	kill()
	open("true")
	check("after another kill", map[int]bool{1: true, 2: false, 3: true}, `["cart","shop"]`)
	kill()
	http.DefaultClient.CloseIdleConnections()
}

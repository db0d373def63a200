package commands_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// TestDeleteThroughTheAdminPort deletes spans of a running process with the command `tracing
// delete`. Deleted spans are gone immediately and after a kill, spans that are resent are
// found, and without allow_delete the request is refused.
func TestDeleteThroughTheAdminPort(t *testing.T) {
	dir := t.TempDir()
	var p *harness.Process
	open := func(allow string) {
		p = harness.RunAllInOne(t, dir, "exporters::disk::reserve=0", "exporters::disk::allow_delete="+allow)
	}
	const resource = `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"%s"}}]},"scopeSpans":[{"spans":[` +
		`{"traceId":"%032d","spanId":"00000000000000%02d","name":"op","startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000000001000"}]}]}]}`
	send := func(trace int, service string) {
		t.Helper()
		p.PostJSON(fmt.Sprintf(resource, service, trace, trace))
	}
	check := func(when string, traces map[int]bool, services string) {
		t.Helper()
		query := p.QueryURL()
		for trace, want := range traces {
			if got := len(harness.SpanCounts(t, query, fmt.Sprint(trace))); got > 0 != want {
				t.Errorf("%s: trace %d has %d spans", when, trace, got)
			}
		}
		if _, body := harness.Fetch(t, query+"/api/services"); !strings.Contains(string(body), services) {
			t.Errorf("%s: services %s, want %s", when, body, services)
		}
	}
	erase := func(want string, args ...string) {
		t.Helper()
		args = append([]string{"delete", "--yes", "--admin", p.AdminURL()}, args...)
		if out, _ := exec.Command(harness.Binary(t), args...).CombinedOutput(); !bytes.Contains(out, []byte(want)) {
			t.Errorf("tracing %q: %s, want %s", args, out, want)
		}
	}

	open("true")
	for trace := 1; trace <= 3; trace++ {
		send(trace, []string{"", "cart", "shop", "shop"}[trace])
	}
	check("sent", map[int]bool{1: true, 2: true, 3: true}, `["cart","shop"]`)
	erase("1 spans would be deleted\n", "--trace", "2", "--dry-run")
	check("counted", map[int]bool{1: true, 2: true, 3: true}, `["cart","shop"]`)
	erase("1 spans deleted\n", "--trace", "2")
	erase("1 spans deleted\n", "--service", "cart", "--to", "2023-11-14T22:13:20Z")
	erase("0 spans deleted\n", "--service", "cart")
	left := map[int]bool{1: false, 2: false, 3: true}
	check("deleted", left, `["shop"]`)
	p.Kill()
	open("false")
	check("after a kill", left, `["shop"]`)
	erase("403 Forbidden: deleting spans is not allowed: set allow_delete: true", "--trace", "3")
	send(1, "cart")
	check("resent", map[int]bool{1: true, 2: false, 3: true}, `["cart","shop"]`)
	p.Kill()
	open("true")
	check("after another kill", map[int]bool{1: true, 2: false, 3: true}, `["cart","shop"]`)
	p.Kill()
	http.DefaultClient.CloseIdleConnections()
}

// TestDeletionMayTakeLongerThanOtherRequests deletes spans although the timeouts of the admin port
// are too short for any request.
func TestDeletionMayTakeLongerThanOtherRequests(t *testing.T) {
	p := harness.RunAllInOne(t, t.TempDir(), "exporters::disk::reserve=0", "exporters::disk::allow_delete=true",
		"extensions::admin::write_timeout=1us")
	p.PostJSON(harness.JSONSpan("00000000000000000000000000000001", "cart", "op", time.Now(), time.Second))
	out, err := exec.Command(harness.Binary(t), "delete", "--yes", "--admin", p.AdminURL(), "--trace", "1").CombinedOutput()
	if err != nil || string(out) != "1 spans deleted\n" {
		t.Errorf("%v: %s", err, out)
	}
}

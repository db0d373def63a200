package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
)

// The command sends deletions to a server and refuses invalid ones without it.
func TestDeleteCommand(t *testing.T) {
	var asked string
	answer := func(w http.ResponseWriter) { fmt.Fprint(w, `{"spans":7}`) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = fmt.Sprintf("%s %s %s %q %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"), r.Header.Get("Authorization"), body)
		answer(w)
	}))
	defer server.Close()
	f := func(args []string, code int, stdout, stderr, want string) {
		t.Helper()
		asked = ""
		gotCode, gotOut, gotErr := execute(t.Context(), hosttest.NewWorld(), append([]string{"delete"}, args...)...)
		gotErr, _, _ = strings.Cut(gotErr, "\n")
		if gotCode != code || gotOut != stdout || gotErr != stderr || asked != want {
			t.Errorf("%q:\n got %d, %q, %q, asked %s\nwant %d, %q, %q, asked %s", args, gotCode, gotOut, gotErr, asked, code, stdout, stderr, want)
		}
	}
	to := func(args ...string) []string { return append([]string{"--yes", "--admin", server.URL}, args...) }
	const done, disk = "7 spans deleted\n", "POST /exporters/disk/delete application/json "
	f(to("--trace", "1", "--trace", "2"), 0, done, "", disk+`"" {"traces":["1","2"]}`)
	f(to("--service", "cart", "--tenant", "t", "--store", "memory/x", "--header", "Authorization: Bearer y"), 0, done, "",
		`POST /exporters/memory/x/delete application/json "Bearer y" {"tenant":"t","service":"cart"}`)
	f(to("--from", "2026-11-21T17:00:00Z", "--to", "2026-11-21T18:00:00.5+01:00"), 0, done, "",
		disk+`"" {"from":"2026-11-21T17:00:00Z","to":"2026-11-21T18:00:00.5+01:00"}`)
	f([]string{"--yes", "--admin", strings.TrimPrefix(server.URL, "http://") + "/", "--trace", "1"}, 0, done, "", disk+`"" {"traces":["1"]}`)

	f(to(), 2, "", "tracing: nothing to delete; give --trace, --service, or --from and --to", "")
	f(to("--trace", "1", "--service", "cart"), 2, "", "tracing: --trace deletes whole traces; leave out --service, --from and --to", "")
	f(to("--service", "", "--to", "2026-11-21T17:00:00Z"), 2, "", "tracing: --service has no value", "")
	f(to("--service", "cart", "--from="), 2, "", "tracing: --from has no value", "")
	f(to("--trace", ""), 2, "", "tracing: --trace has no value", "")
	f(to("--service", "cart", "--tenant", ""), 0, done, "", disk+`"" {"service":"cart"}`)
	f([]string{"--yes", "--trace", "1"}, 2, "", "tracing: configuration has no admin extension; give --admin URL", "")
	f(to("--from", "now"), 2, "", `tracing: --from: "now" is not a time; write it as 2026-11-21T17:00:00Z`, "")
	f(to("--trace", "1", "--store", "a:b"), 2, "",
		`tracing: --store: "a:b" is not a component id; write type or type/name, for example otlp or otlp/internal`, "")
	f([]string{"--yes", "--admin", "ftp://x", "--trace", "1"}, 2, "", `tracing: --admin: "ftp://x" is not an address such as http://localhost:14269`, "")
	f(to("--trace", "1", "--header", "x"), 2, "", "tracing: invalid value \"x\" for flag -header: \"x\" is not of the form `Name: value`", "")

	f(to("--service", "cart", "--dry-run"), 0, "7 spans would be deleted\n", "", disk+`"" {"service":"cart","dry_run":true}`)

	answer = func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"error":"set allow_delete"}`)
	}
	f(to("--trace", "1"), 1, "", "tracing: 403 Forbidden: set allow_delete", disk+`"" {"traces":["1"]}`)
	answer = func(w http.ResponseWriter) { http.Error(w, "no such thing", http.StatusNotFound) }
	f(to("--trace", "1"), 1, "", "tracing: 404 Not Found: no such thing", disk+`"" {"traces":["1"]}`)
}

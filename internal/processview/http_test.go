package processview_test

import (
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/internal/processview"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseQuestion(t *testing.T) {
	q, err := processview.ParseQuestion(url.Values{"service": {"a"}, "operation": {"b"}, "trace": {" 1F "}})
	if err != nil || q.Service != "a" || q.Operation != "b" || q.Trace[15] != 0x1f {
		t.Errorf("%+v %v", q, err)
	}
	q.Tenant = "t"
	if got := q.Values().Encode(); got != "operation=b&service=a&tenant=t&trace=0000000000000000000000000000001f" {
		t.Error(got)
	}
	for _, bad := range []string{"0", "00000000000000000000000000000000", "xyz", strings.Repeat("1", 33)} {
		if _, err := processview.ParseQuestion(url.Values{"trace": {bad}}); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if _, err := processview.ParseQuestion(url.Values{"service": {strings.Repeat("x", 1025)}}); err == nil {
		t.Error("a long name is accepted")
	}
}

func FuzzParseQuestion(f *testing.F) {
	f.Add("service=a&trace=1f")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		q, err := processview.ParseQuestion(v)
		if err != nil {
			return
		}
		again, err := processview.ParseQuestion(q.Values())
		if err != nil || again != q {
			t.Errorf("%+v became %+v, %v", q, again, err)
		}
	})
}

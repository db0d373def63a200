package pagetoken

import (
	"errors"
	"math"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTokens(t *testing.T) {
	query := []byte("query")
	for _, c := range []tracestore.Cursor{
		{}, {Set: true}, {Set: true, Start: math.MaxUint64, ID: otlpdata.TraceID{1, 15: 2}},
	} {
		token := New(c, query)
		if got, err := Parse(token, query); err != nil || got != c || (token == "") == c.Set {
			t.Errorf("%+v became %q and %+v, %v", c, token, got, err)
		}
	}
	token := New(tracestore.Cursor{Set: true, Start: 5, ID: otlpdata.TraceID{7}}, query)
	if again := New(tracestore.Cursor{Set: true, Start: 5, ID: otlpdata.TraceID{7}}, query); again != token {
		t.Errorf("%q and %q", token, again)
	}
	for i := range token {
		for _, other := range []string{"A", "B", "_", "="} {
			if forged := token[:i] + other + token[i+1:]; forged != token {
				checkInvalid(t, forged, "query")
			}
		}
	}
	for _, forged := range []string{"x", "\xff", token + "A", token[1:], token + "\n", strings.Repeat("A", 1<<16)} {
		checkInvalid(t, forged, "query")
	}
	checkInvalid(t, token, "other")
	checkInvalid(t, token, "")
}

func checkInvalid(t *testing.T, token, query string) {
	t.Helper()
	if c, err := Parse(token, []byte(query)); !errors.Is(err, ErrInvalid) || c.Set {
		t.Errorf("%q is accepted as %+v, %v", token, c, err)
	}
}

package batch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func withHeaders(b *otlpdata.Batch, headers map[string][]string) *otlpdata.Batch {
	return b.WithMetadata(otlpdata.NewMetadata(headers))
}

// Requests are joined only if the headers in metadata_keys are equal. Only these are passed on.
func TestMetadataKeysSeparateRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{consume: func(context.Context, *otlpdata.Batch) error {
			time.Sleep(time.Second)
			return nil
		}}
		p := build(t, s, func(c *Config) { c.MetadataKeys = []string{"X-Org", "x-team"} })
		var wg sync.WaitGroup
		consume := func(tenant, name string, headers map[string][]string) {
			wg.Go(func() {
				if err := p.Consume(t.Context(), withHeaders(request(t, tenant, name, 1), headers)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			synctest.Wait()
		}
		consume("", "first", map[string][]string{"x-org": {"a"}, "authorization": {"secret"}})
		for i := range 2 {
			consume("", fmt.Sprint("a", i), map[string][]string{"X-ORG": {"a"}, "request-id": {fmt.Sprint(i)}})
			consume("", fmt.Sprint("b", i), map[string][]string{"x-org": {"b"}})
			consume("", fmt.Sprint("two", i), map[string][]string{"x-org": {"a", "b"}})
			consume("", fmt.Sprint("team", i), map[string][]string{"x-org": {"a"}, "x-team": {"1"}})
			consume("", fmt.Sprint("empty", i), map[string][]string{"x-org": {""}})
			consume("", fmt.Sprint("none", i), nil)
			consume("t", fmt.Sprint("tenant", i), map[string][]string{"x-org": {"a"}})
		}
		wg.Wait()
		var got []string
		for _, b := range s.got {
			got = append(got, fmt.Sprint(slices.Sorted(maps.Keys(names(b))), maps.Collect(b.Meta().Metadata.All())))
		}
		want := []string{"[first] map[x-org:[a]]", "[a0 a1] map[x-org:[a]]", "[b0 b1] map[x-org:[b]]", "[two0 two1] map[x-org:[a b]]",
			"[team0 team1] map[x-org:[a] x-team:[1]]", "[empty0 empty1] map[x-org:[]]", "[none0 none1] map[]", "[tenant0 tenant1] map[x-org:[a]]"}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

// Requests with too many combinations are refused permanently; known combinations still pass.
func TestMetadataCardinalityLimit(t *testing.T) {
	for limit, refused := range map[int]int{2: 3, 0: 0} {
		s := &sink{}
		p := build(t, s, func(c *Config) { c.MetadataKeys, c.MetadataLimit = []string{"x-org"}, limit })
		got := 0
		for _, org := range []string{"a", "b", "c", "a", "d", "b", "c"} {
			err := p.Consume(t.Context(), withHeaders(request(t, "", "x", 1), map[string][]string{"x-org": {org}}))
			if err == nil {
				continue
			}
			if got++; !pipeline.IsPermanent(err) || !strings.Contains(err.Error(), "more than 2 combinations") {
				t.Errorf("%v", err)
			}
		}
		if got != refused || len(s.got) != 7-refused {
			t.Errorf("limit %d: %d refused, %d sent", limit, got, len(s.got))
		}
	}
}

func TestBadMetadataConfig(t *testing.T) {
	c := defaults()
	c.MetadataKeys, c.MetadataLimit = []string{"X-Org", "x-org"}, -1
	const want = "must not be below 0\n\"x-org\" is listed twice; headers are the same in any case"
	if err := c.Validate(); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

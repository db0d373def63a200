package search

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// How many rows are read to list keys and values that stand in rows, those of the newest blocks.
const (
	maxLiveRows   = 1 << 14 // of a source that may still change: they are read for every list
	maxSourceRows = 1 << 16 // of another one: what was found is kept
	maxListRows   = 1 << 19 // for one list; what it has not read, the next one may
)

// How many texts are kept of a source and a topic, and how many bytes these have.
const (
	maxTexts     = 20_000
	maxTextBytes = 2 << 20
)

// topic is what texts are listed of: the attribute keys of a tenant, or the values of one key.
type topic struct {
	tenant string
	keys   bool
	key    string // unless keys
}

// AttributeKeys implements tracestore.AttributeCatalog. Of keys that stand in rows those of the newest spans are listed. A list has at most
// maxListBytes, as has that of AttributeValues.
func (e *Engine) AttributeKeys(ctx context.Context, tenant, prefix string, limit int) ([]string, error) {
	return e.complete(ctx, topic{tenant: tenant, keys: true}, prefix, limit)
}

// AttributeValues implements tracestore.AttributeCatalog. Where there are more than are asked for, and where values stand in rows, those of
// the newest spans are listed.
func (e *Engine) AttributeValues(ctx context.Context, tenant, key, prefix string, limit int) ([]string, error) {
	if key == otlpdata.FlagsAttribute {
		return []string{}, nil
	}
	return e.complete(ctx, topic{tenant: tenant, key: key}, prefix, limit)
}

// complete lists texts of the newest sources until there are enough.
func (e *Engine) complete(ctx context.Context, t topic, prefix string, limit int) ([]string, error) {
	s := e.begin()
	defer s.lease.release()
	e.texts.keep(s.sources)
	c := completion{session: s, topic: t, list: s.newList(prefix, limit), left: maxListRows}
	for _, src := range s.newestFirst() {
		if err := c.add(ctx, src); err != nil {
			return nil, err
		}
		if c.list.full() {
			break
		}
	}
	return c.list.sorted(), nil
}

// newestFirst returns the numbers of all sources, by their newest span.
func (s *session) newestFirst() []int {
	newest := make([]uint64, len(s.sources))
	for i, src := range s.sources {
		_, _, newest[i] = src.Bounds()
	}
	out := s.all()
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(newest[b], newest[a]) })
	return out
}

// completion is one list in the making.
type completion struct {
	*session
	topic topic
	list  *list
	left  int // rows that may be read
}

// add adds the texts of a source.
func (c *completion) add(ctx context.Context, src int) error {
	if _, lasts := c.sources[src].(source.Catalog); !lasts {
		_, err := c.read(ctx, src, c.list, maxLiveRows)
		return err
	}
	k := c.engine.texts.get(c.sources[src], c.topic)
	if k == nil {
		var err error
		if k, err = c.learn(ctx, src); err != nil {
			return err
		}
	}
	from, _ := slices.BinarySearch(k.texts, c.list.prefix)
	for _, text := range k.texts[from:] {
		if c.list.full() || !strings.HasPrefix(text, c.list.prefix) {
			break
		}
		c.list.add(text)
	}
	if !k.cut || c.list.full() {
		return nil
	}
	return newAttributes(c.session, src, c.topic, c.list).vocabulary(ctx)
}

// learn finds out what a source has, and keeps it if nothing was in the way.
func (c *completion) learn(ctx context.Context, src int) (*knownTexts, error) {
	damaged := len(c.damage.seen)
	l := &list{limit: maxTexts, max: maxTexts, room: maxTextBytes, texts: make(map[string]struct{})}
	whole, err := c.read(ctx, src, l, maxSourceRows)
	if err != nil {
		return nil, err
	}
	k := &knownTexts{texts: l.sorted(), cut: l.full()}
	if whole && len(c.damage.seen) == damaged {
		c.engine.texts.put(c.sources[src], c.topic, k)
	}
	return k, nil
}

// read adds what vocabulary and rows of a source say, of at most so many rows. It is not whole where only fewer could be read.
func (c *completion) read(ctx context.Context, src int, l *list, most int) (whole bool, _ error) {
	a := newAttributes(c.session, src, c.topic, l)
	if err := a.vocabulary(ctx); err != nil {
		return false, err
	}
	may := min(c.left, most)
	n, err := a.rest(ctx, may)
	c.left -= n
	return may == most || n < may || a.wanted[src] == nil, err
}

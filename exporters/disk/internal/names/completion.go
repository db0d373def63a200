package names

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
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
func (c *Catalog) AttributeKeys(ctx context.Context, tenant, prefix string, limit int) ([]string, error) {
	return c.complete(ctx, topic{tenant: tenant, keys: true}, prefix, limit)
}

// AttributeValues implements tracestore.AttributeCatalog. Where there are more than are asked for, and where values stand in rows, those of
// the newest spans are listed.
func (c *Catalog) AttributeValues(ctx context.Context, tenant, key, prefix string, limit int) ([]string, error) {
	if key == otlpdata.FlagsAttribute {
		return []string{}, nil
	}
	return c.complete(ctx, topic{tenant: tenant, key: key}, prefix, limit)
}

// complete lists texts of the newest sources until there are enough.
func (c *Catalog) complete(ctx context.Context, t topic, prefix string, limit int) ([]string, error) {
	s := c.store.Begin()
	defer s.Release()
	c.texts.keep(s.Sources)
	l := completion{session: s, texts: c.texts, topic: t, list: newList(s, prefix, limit), left: maxListRows}
	for _, src := range newestFirst(s) {
		if err := l.add(ctx, src); err != nil {
			return nil, err
		}
		if l.list.full() {
			break
		}
	}
	return l.list.sorted(), nil
}

// newestFirst returns the numbers of all sources, by their newest span.
func newestFirst(s *scan.Session) []int {
	newest := make([]uint64, len(s.Sources))
	for i, src := range s.Sources {
		_, _, newest[i] = src.Bounds()
	}
	out := allSources(s)
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(newest[b], newest[a]) })
	return out
}

// completion is one list in the making.
type completion struct {
	session *scan.Session
	texts   *textCache
	topic   topic
	list    *list
	left    int // rows that may be read
}

// add adds the texts of a source.
func (c *completion) add(ctx context.Context, src int) error {
	if _, lasts := c.session.Sources[src].(source.Catalog); !lasts {
		_, err := c.read(ctx, src, c.list, maxLiveRows)
		return err
	}
	k := c.texts.get(c.session.Sources[src], c.topic)
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
	return newAttributeLister(c.session, src, c.topic, c.list).addFromTables(ctx)
}

// learn finds out what a source has, and keeps it if nothing was in the way.
func (c *completion) learn(ctx context.Context, src int) (*knownTexts, error) {
	damaged := c.session.DamagedParts()
	l := &list{limit: maxTexts, max: maxTexts, room: maxTextBytes, texts: make(map[string]struct{})}
	whole, err := c.read(ctx, src, l, maxSourceRows)
	if err != nil {
		return nil, err
	}
	k := &knownTexts{texts: l.sorted(), cut: l.full()}
	if whole && c.session.DamagedParts() == damaged {
		c.texts.put(c.session.Sources[src], c.topic, k)
	}
	return k, nil
}

// read adds what vocabulary and rows of a source say, of at most so many rows. It is not whole where only fewer could be read.
func (c *completion) read(ctx context.Context, src int, l *list, most int) (whole bool, _ error) {
	a := newAttributeLister(c.session, src, c.topic, l)
	if err := a.addFromTables(ctx); err != nil {
		return false, err
	}
	may := min(c.left, most)
	n, err := a.addFromRows(ctx, may)
	c.left -= n
	return may == most || n < may || a.scan.wanted[src] == nil, err
}

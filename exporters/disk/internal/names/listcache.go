package names

import (
	"context"
	"errors"
	"slices"
	"sync"
	"unsafe"
	"weak"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// listKey identifies a list of services, or of operations of a service.
type listKey struct {
	tenant        string
	service, kind string // "" for services
	query         tracestore.NameQuery
}

// listCache caches lists of the names in some sources until a source is added, removed or changed.
// Concurrent queries for the same list wait until it is made once. Above a maximum size, the cache
// drops all lists. It is safe for concurrent use.
type listCache struct {
	limit int64

	mu      sync.Mutex
	sources []identity // of the sources whose names the lists have
	lists   map[listKey]*keptList
	memory  int64
}

// identity identifies a source without keeping it in memory, because the source may be a memtable
// that was flushed. Identities of different sources differ even if one of them no longer exists.
type identity weak.Pointer[byte]

func identityOf(s source.Source) identity {
	words := (*[2]unsafe.Pointer)(unsafe.Pointer(&s)) // of an interface: type and pointer to the value
	return identity(weak.Make((*byte)(words[1])))
}

// keptList is a list that is cached or being made.
type keptList struct {
	made chan struct{} // closed when list and err are set
	list *nameList
	err  error
}

func newListCache(limit int64) *listCache { return &listCache{limit: limit} }

// get returns the list for a key and some of the sources. make makes it if it is not cached. The
// result must not be modified.
func (c *listCache) get(
	ctx context.Context, all []source.Source, some []int, k listKey, make func() (*nameList, error),
) (*nameList, error) {
	for {
		l, mine := c.find(all, some, k)
		if mine {
			return c.make(k, l, make)
		}
		select {
		case <-l.made:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if l.err == nil {
			return l.list, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		// The other query failed, perhaps because its client disconnected.
	}
}

var errNotMade = errors.New("list of names was not made")

// make makes a list and lets the queries that wait for it continue, even after a panic.
func (c *listCache) make(k listKey, l *keptList, make func() (*nameList, error)) (*nameList, error) {
	l.err = errNotMade
	defer c.keep(k, l)
	l.list, l.err = make()
	return l.list, l.err
}

// find returns the list for a key. If mine is true, the caller must make it and then call keep.
func (c *listCache) find(all []source.Source, some []int, k listKey) (l *keptList, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.current(all, some) {
		c.sources = c.sources[:0:0]
		for _, i := range some {
			c.sources = append(c.sources, identityOf(all[i]))
		}
		c.drop()
	}
	if l := c.lists[k]; l != nil {
		return l, false
	}
	l = &keptList{made: make(chan struct{})}
	c.lists[k] = l
	return l, true
}

// current reports whether the lists belong to the given sources.
func (c *listCache) current(all []source.Source, some []int) bool {
	return c.lists != nil && slices.EqualFunc(c.sources, some, func(s identity, i int) bool { return s == identityOf(all[i]) })
}

func (c *listCache) drop() { c.lists, c.memory = make(map[listKey]*keptList), 0 }

// keep caches a list that was made, unless making it failed or it is too large.
func (c *listCache) keep(k listKey, l *keptList) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(l.made)
	if c.lists[k] != l {
		return // the sources have changed in the meantime
	}
	if l.err != nil || l.list.brief {
		delete(c.lists, k)
		return
	}
	size := l.list.memory() + int64(len(k.tenant)+len(k.service)+len(k.query.Prefix))
	if c.memory+size > c.limit {
		c.drop()
	}
	if size <= c.limit {
		c.lists[k] = l
		c.memory += size
	}
}

package uiapi

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// A trace is expected to grow until growingFor after its last span ended or was stored.
const growingFor = 30 * time.Second

// outlineVersion identifies the content of an outline. It is zero if the store does not know
// versions.
type outlineVersion struct {
	number uint64
	stored time.Time // when the last span was stored, zero if unknown
}

// versionOf queries the store for the version of a trace. The result also depends on the limits,
// because the outline does.
func versionOf(slot *core.Slot, id otlpdata.TraceID) outlineVersion {
	v, err := slot.Store().TraceVersion(slot.Context(), slot.Tenant(), id)
	if err != nil || v.Number == 0 { // reading the trace reports the error
		return outlineVersion{}
	}
	l := slot.Limits()
	return outlineVersion{newHasher(v.Number, uint64(l.TraceSize), uint64(l.ClockSkew)).sum.Sum64(), v.Stored}
}

// hasher hashes numbers, with the same result in all processes.
type hasher struct{ sum hash.Hash64 }

func newHasher(numbers ...uint64) hasher {
	h := hasher{fnv.New64a()}
	h.addNumbers(numbers...)
	return h
}

func (h hasher) addNumbers(numbers ...uint64) {
	var b [8]byte
	for _, n := range numbers {
		binary.LittleEndian.PutUint64(b[:], n)
		h.sum.Write(b[:]) //nolint:errcheck // never fails
	}
}

// isKnownTo reports whether the client that sends a request has this version, and whether it knows
// how long the trace is expected to grow. A tag consists of the version number in hex, a hyphen,
// and the time until which the trace is expected to grow, in milliseconds since the Unix epoch or
// 0.
func (v outlineVersion) isKnownTo(r *http.Request, now time.Time) bool {
	if v.number == 0 {
		return false
	}
	for tag := range strings.SplitSeq(r.Header.Get("If-None-Match")+","+r.URL.Query().Get("since"), ",") {
		tag = strings.Trim(strings.TrimPrefix(strings.TrimSpace(tag), "W/"), `"`)
		number, until, _ := strings.Cut(tag, "-")
		ms, err := strconv.ParseInt(until, 10, 64)
		if number == fmt.Sprintf("%016x", v.number) && err == nil && (ms == 0 || now.UnixMilli() < ms) {
			return true
		}
	}
	return false
}

// tag returns the ETag of the outline. It is weak because responses are compressed for some
// clients.
func (o *outline) tag(v outlineVersion) string {
	until := int64(0)
	if o.growing {
		until = o.growsUntil().UnixMilli()
	}
	return fmt.Sprintf(`W/"%016x-%d"`, v.number, until)
}

// growsUntil returns the time until which the trace is expected to grow.
func (o *outline) growsUntil() time.Time {
	last := time.Unix(0, int64(o.lastEnd))
	if o.stored.After(last) {
		last = o.stored
	}
	return last.Add(growingFor)
}

// hash returns a hash of the outline, which is its version if the store does not know versions.
func (o *outline) hash() uint64 {
	h := newHasher(uint64(o.maxSpans), uint64(o.maxSkew))
	for i := range o.spans {
		s := &o.spans[i]
		h.addNumbers(binary.BigEndian.Uint64(s.id[:]), binary.BigEndian.Uint64(s.parent[:]), s.start, s.duration, uint64(s.name),
			uint64(s.service), uint64(s.kind), uint64(s.flags))
		if x := o.extrasOf(s); x != nil {
			h.addNumbers(uint64(x.links), uint64(x.to-x.from))
		}
	}
	for _, words := range [][]string{o.services.words, o.names.words} {
		for _, word := range words {
			h.addNumbers(uint64(len(word)))
			h.sum.Write([]byte(word)) //nolint:errcheck // never fails
		}
	}
	return h.sum.Sum64()
}

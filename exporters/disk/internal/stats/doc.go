// Package stats implements the statistics of a segment: rates, errors, durations and dependencies,
// which queries can use instead of reading spans. A [Collector] counts every span while a segment
// is written. The results are stored in three sections of the segment, which are decoded as
// [SeriesStats], [EdgeStats] and [OrphanStats].
//
//	series   (tenant, service, operation, kind, error) x minute -> histogram, sum of durations
//	edges    (tenant, parent service, child service, kind) x minute of the child -> errors,
//	         histogram; for calls within a service: calls, errors, sum of durations
//	orphans  spans whose parent is not in the segment: each becomes an edge if the parent is found
//	         in another segment
//
// A span that was sampled with a threshold stands for several calls (otlpdata.Span.AdjustedCount).
// It is counted once in its series, in edges and in orphans. The other calls that it stands for are
// counted in a second series with [Series].Unsampled set. Callers that count calls add both;
// callers that count spans ignore the second one.
//
// A minute is the start of a span in whole minutes since the Unix epoch. Durations are in
// nanoseconds, in the buckets of [tracestore.BucketOf].
//
// # Sections
//
// A section is self-contained. The segment compresses it and stores its checksum. All numbers are
// varints as in encoding/binary; "delta" is the difference from the preceding value, or from zero.
//
//	section  version [1], dropped, texts, names, groups, bodies
//	texts    n, (length, bytes)*             sorted, distinct
//	names    n, name*                        sorted, distinct; points refer to them by index
//	groups   n, (minute, points, bytes)*     minute: difference from 1 + the preceding one;
//	                                         bytes: length of the body
//	bodies   point*                          one per group
//
// dropped is the number of spans that were not counted, or whose unsampled calls were not counted,
// because a limit was reached. Names and points are:
//
//	series   name       tenant, service, operation, kind << 2 | unsampled << 1 | error; the first
//	                    three and kind are the index of a text
//	         point      delta of the series, histogram
//	         histogram  sum, non-empty buckets - 1, the first of them, nibbles
//	edges    name       tenant, parent, child << 5 | connection << 2 | inner << 1 | messaging
//	         point      delta of the edge, errors, histogram;
//	                    if inner: delta of the edge, calls - 1, errors, sum
//	orphans  name       tenant, service
//	         point      flags [1]: consumer | failed << 1 | same parent << 2 | common << 3
//	                    trace id without the first common bytes, which equal those of the
//	                    preceding point; parent id, unless it is the same
//	                    index of the service << 4 | connection << 1 | server, duration
//
// A nibble from 1 to 14 is the count of the next bucket. 15 means that the count is 15 plus the
// number that follows. 0 means that one bucket plus the number that follows are empty. A number in
// nibbles has three bits per nibble, the lowest first; the fourth bit is set if more nibbles
// follow. The low half of a byte comes first.
//
// Points of a body ascend: by series, by edge, or by trace id and parent id. The flag "same parent"
// implies the same trace.
package stats

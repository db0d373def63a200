// Package stats is what a segment knows about its spans in sum, so that questions about rates, errors, durations and dependencies are
// answered without looking at spans. A [Collector] sees every span once while a segment is written; three sections of the segment's footer
// keep what it has collected, and are read back as [SeriesStats], [EdgeStats] and [OrphanStats].
//
//	series   (tenant, service, operation, kind, error) x minute -> histogram of durations, sum of durations
//	edges    (tenant, parent service, child service, kind) x minute of the child -> calls, errors, sum of durations
//	orphans  spans whose parent is not in the segment: with the parent, which may be in another one, each becomes an edge
//
// A span that was sampled with a threshold stands for several calls (otlpdata.Span.AdjustedCount). It is counted once in its series, as in
// edges and orphans, and as often as it stands for others in a second series, which is Extra: who counts calls adds both, who counts spans
// passes over that.
//
// A minute is a span's start in whole minutes since the Unix epoch, whatever the start is.
//
// # Durations
//
// Durations are nanoseconds, in the buckets of [tracestore.BucketOf].
//
// # Sections
//
// A section is self-contained. It begins with its version: 2 that of series of which some are Extra, 1 all others. The segment compresses
// it and has its checksum. All numbers are varints as in encoding/binary; "delta" is the distance from the value before, or from zero.
//
//	section  version [1], dropped, texts, names, groups, bodies
//	texts    n, (length, bytes)*                  sorted, distinct
//	names    n, name*                             sorted, distinct; points refer to them by number
//	groups   n, (minute, points, bytes)*          minute: distance from the one behind the last; bytes: of its body
//	bodies   point*                               one per group
//
// dropped is how many spans had no room, or not for all that they stand for. Names and points are:
//
//	series   name       tenant, service, operation, kind << 1 | error, each the number of a text
//	                    in version 2 the last is kind << 2 | extra << 1 | error
//	         point      delta of the series, histogram
//	         histogram  sum, buckets that are not empty - 1, the first of them, nibbles
//	edges    name       tenant, parent, child << 1 | kind
//	         point      delta of the edge, calls - 1, errors, sum
//	orphans  name       tenant, service
//	         point      flags [1]: kind | failed << 1 | same parent << 2 | common << 3
//	                    trace id without the first common bytes, which it shares with the one before; parent id, unless it is the same
//	                    number of the service, duration
//
// A nibble from 1 to 14 is the count of the next bucket. 15 says that the count is 15 more than the number that follows. 0 says that one
// bucket more than the number that follows is empty. A number in nibbles has three bits in each, the low ones first, and the fourth bit
// where more follow. The low half of a byte comes first.
//
// Points of a body ascend: by series, by edge, or by trace id and parent id. A flag of the same parent means the same trace, too.
package stats

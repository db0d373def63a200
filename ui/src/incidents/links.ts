// Where an incident leads.

import type { AffectedService } from '../api/incidents';
import type { Incident } from '../api/types';
import { durationText } from '../query/field';
import { iso, millis } from '../shell/format';
import { resolveTime } from '../shell/range';
import { link, type Range } from '../shell/url';

/** The time of an incident. `to` is the end of the range of the page. */
export function rangeOf({ start, end }: Incident, to: string): Range {
  return { from: start === null ? 'now-1h' : iso(millis(start)), to: end === null ? to : iso(millis(end)) };
}

/** The requests of a service, as they are counted. */
export function requestsQuery({ name, allSpans }: AffectedService, ...conditions: string[]): string {
  const kind = allSpans ? [] : ['(kind = server || kind = consumer)'];
  return `{ ${[`service = ${JSON.stringify(name)}`, ...kind, ...conditions].join(' && ')} }`;
}

/** The failed or slow requests of a service. */
export function badQuery(s: AffectedService): string {
  return requestsQuery(s, s.kind === 'errors' ? 'error' : `duration >= ${durationText(Math.floor(s.slowFrom))}`);
}

const longest = 10; // times p99: the end of the box of slow requests

const minBefore = 1_800_000; // milliseconds

/** Explains what failed or slow requests have in common, compared with the others; where most requests are bad, also with those before. */
export function explainLink(s: AffectedService, to: string): string {
  const during = rangeOf(s, to);
  const [t0, t1] = [during.from, during.to].map((text) => resolveTime(text, Date.now()) ?? Date.now());
  const mostly = s.kind === 'slow' || s.errors > s.calls / 2;
  const range = mostly ? { ...during, from: iso(t0 - Math.max(t1 - t0, minBefore)) } : during;
  const sel = s.kind === 'errors' ? 'errors' as const : { t0, t1, d0: s.slowFrom, d1: (s.p99 ?? s.slowFrom) * longest };
  return link({ page: 'explore' }, { q: requestsQuery(s), of: 'spans', sel, tab: 'explain', range });
}

// What the header of the trace page says: counts, errors, what is missing and why, clock skew.

import type { Outline } from '../../api/types';
import { count } from '../../shell/format';
import { t } from '../../shell/text';
import { flag, type Cause, type Facts, type TraceModel } from './types';

type Source = Pick<TraceModel, 'services' | 'service' | 'depth' | 'flags' | 'kind' | 'eventTime' | 'start' | 'subtree' | 'roots'>;

/** Collects the facts of a trace. `messages` are the errors of the answer. */
export function buildFacts(m: Source, o: Outline, messages: string[]): Facts {
  const errors: number[] = [];
  const orphans: number[] = [];
  const services = new Set<number>();
  let depth = 0;
  for (let i = 0; i < m.flags.length; i++) {
    if (m.flags[i] & flag.error) errors.push(i);
    if (m.flags[i] & flag.orphan) orphans.push(i);
    services.add(m.service[i]);
    depth = Math.max(depth, m.depth[i] + 1);
  }
  return {
    services: services.size, depth, errors: Int32Array.from(errors), events: m.eventTime.length, orphans: Int32Array.from(orphans),
    causes: causes(m, o, orphans, messages), skew: skewByService(m, o), growing: o.growing === true, cut: o.cut, messages,
  };
}

/** What can have caused that spans are missing, most likely first. */
function causes(m: Source, o: Outline, orphans: number[], messages: string[]): Cause[] {
  const list: Cause[] = [];
  if (o.cut) list.push({ kind: 'cut', text: t('The trace exceeds the server\'s limit: only {spans} spans are listed.', { spans: count(o.spans) }) });
  else if (messages.length > 0) list.push({ kind: 'unreadable', text: t('Some of the stored spans cannot be read.') });
  if (orphans.length === 0) return list;
  if (o.growing) list.push({ kind: 'growing', text: t('The trace is still receiving spans. Parents are often sent after their children.') });
  if (!hasRoot(m)) list.push({ kind: 'root', text: t('The root span is missing: it has not ended yet, was not sent, or is older than the retention.') });
  const callee = calledService(m, orphans);
  if (callee) list.push({ kind: 'service', text: t('All spans with missing parents are in {callee}: one of its callers passes the trace on, but that caller\'s spans do not arrive.', { callee }) });
  list.push({ kind: 'sampling', text: t('A service sampled differently, or its spans were dropped on the way.') });
  return list;
}

function hasRoot(m: Source): boolean {
  return m.roots.some((i) => (m.flags[i] & flag.root) !== 0);
}

/** The service of all spans with missing parents, if it is one of several. */
function calledService(m: Source, orphans: number[]): string {
  const service = m.service[orphans[0]];
  if (m.services.length < 2 || orphans.some((i) => m.service[i] !== service)) return '';
  return m.services[service];
}

/** Largest correction by service. */
function skewByService(m: Source, o: Outline): Facts['skew'] {
  const by = new Map<number, { service: number; shift: number; spans: number }>();
  o.skew?.span.forEach((s, i) => {
    const shift = o.skew!.shift[i];
    const entry = by.get(m.service[s]) ?? { service: m.service[s], shift: 0, spans: 0 };
    by.set(entry.service, entry);
    entry.spans++;
    if (Math.abs(shift) > Math.abs(entry.shift)) entry.shift = shift;
  });
  return [...by.values()].sort((a, b) => Math.abs(b.shift) - Math.abs(a.shift));
}

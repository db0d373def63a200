import type { Ingest } from '../../api/types';
import type { MarkKind } from '../../shell/icons';
import { count } from '../../shell/format';

/** The sentence of the status page. `rate` is in spans per second, null if not known yet. */
export function statusSentence(d: Pick<Ingest, 'receives' | 'received' | 'refused' | 'refusedRequests' | 'dropped'>, rate: number | null): { text: string; mark: MarkKind | null } {
  if (!d.receives) return { text: 'This process answers queries and receives no spans', mark: null };
  const problems: string[] = [];
  if (d.dropped > 0) problems.push(`${count(d.dropped)} ${plural(d.dropped, 'span')} dropped`);
  if (d.refused > 0) problems.push(`${count(d.refused)} ${plural(d.refused, 'span')} refused`);
  if (d.refusedRequests > 0) problems.push(`${count(d.refusedRequests)} ${plural(d.refusedRequests, 'request')} refused`);
  if (problems.length > 0) return { text: `${problems.join(', ')}, ${count(d.received)} ${plural(d.received, 'span')} accepted`, mark: 'warn' };
  if (d.received === 0) return { text: 'No span received since the start', mark: null };
  if (rate === null) return { text: 'Healthy: nothing refused, nothing dropped', mark: 'ok' };
  if (rate < 0.5) return { text: 'Healthy and idle: no spans at the moment', mark: 'ok' };
  return { text: `Healthy: ${count(rate)} spans/s received, none refused or dropped`, mark: 'ok' };
}

function plural(n: number, noun: string): string {
  return n === 1 ? noun : noun + 's';
}

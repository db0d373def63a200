// Clock-skew correction of files.

import type { Ordered } from './order';
import type { FileSpan } from './span';

/** Shifts of the spans whose times are corrected, in nanoseconds. */
export interface Skew {
  span: number[];
  shift: number[];
}

/**
 * Corrects clock differences between hosts. A span that starts before its parent on another host is moved into the middle of
 * the parent, as if the latency were equal in both directions. Its descendants on the same host move along. Spans that only
 * end after their parent are not moved: they can be asynchronous.
 */
export function alignClocks(o: Ordered): Skew {
  const shift = new Float64Array(o.spans.length);
  const hosts = o.spans.map(host);
  const skew: Skew = { span: [], shift: [] };
  for (let i = 0; i < shift.length; i++) {
    const p = o.parent[i];
    if (p < 0 || hosts[i] === '' || hosts[p] === '' || o.spans[i].start === '0') continue;
    const parentStart = o.start[p] + shift[p];
    if (hosts[i] === hosts[p]) shift[i] = shift[p];
    else if (o.start[i] < parentStart) shift[i] = parentStart + Math.max(0, Math.floor((o.spans[p].duration - o.spans[i].duration) / 2)) - o.start[i];
    if (shift[i] === 0) continue;
    skew.span.push(i);
    skew.shift.push(shift[i]);
  }
  return skew;
}

const hostKeys = ['host.id', 'host.ip', 'host.name', 'ip', 'hostname'];

function host(s: FileSpan): string {
  for (const key of hostKeys) {
    const a = s.resource.find((r) => r.key === key);
    if (a) return a.value;
  }
  return '';
}

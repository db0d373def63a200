// Clock-skew correction of files, as the server corrects stored traces.

import type { Ordered } from './order';
import type { FileSpan } from './span';

/** Shifts of the spans whose times are corrected, in nanoseconds. */
export interface Skew {
  span: number[];
  shift: number[];
}

/** What the correction depends on, by span; parents come before their children. Times are nanoseconds. */
export interface Clocks {
  /** Index of the parent, or -1. */
  parent: number[];
  start: number[];
  duration: number[];
  /** "": not known. */
  host: string[];
  /** Whether the span processes a message. */
  consumer: boolean[];
  /** Whether the span has a start time. */
  timed: boolean[];
}

/**
 * Corrects clock differences between hosts: a span is moved by the least with which it is within its parent. One that starts before
 * its parent is moved to the start of it, one that ends after its parent on another host to the end of it, unless it is longer or
 * processes a message. Its descendants on the same host move along. If a host is not known, a span may well end after its parent.
 */
export function leastShifts(c: Clocks): number[] {
  const shift: number[] = [];
  for (let i = 0; i < c.parent.length; i++) {
    const p = c.parent[i];
    const known = p >= 0 && c.host[i] !== '' && c.host[p] !== '';
    if (p < 0 || !c.timed[i]) shift.push(0);
    else if (known ? c.host[i] === c.host[p] : c.start[i] >= c.start[p]) shift.push(shift[p]);
    else shift.push(leastShift(c, i, c.start[p] + shift[p]));
  }
  return shift;
}

/** The smallest shift of a span with which it is within its parent, which starts at `begin`. */
function leastShift({ parent, start, duration, consumer, timed }: Clocks, span: number, begin: number): number {
  const p = parent[span];
  const late = start[span] + duration[span] - begin - duration[p];
  if (!timed[p]) return 0;
  if (start[span] < begin) return begin - start[span];
  return late > 0 && duration[span] <= duration[p] && !consumer[span] ? -late : 0;
}

/** The correction of a trace. */
export function alignClocks(o: Ordered): Skew {
  const shifts = leastShifts({
    parent: o.parent, start: o.start, duration: o.spans.map((s) => s.duration), host: o.spans.map(host), consumer: o.spans.map((s) => s.kind === 'consumer'), timed: o.spans.map((s) => s.start !== '0'),
  });
  const span = shifts.flatMap((shift, i) => (shift === 0 ? [] : [i]));
  return { span, shift: span.map((i) => shifts[i]) };
}

const hostKeys = ['host.id', 'host.ip', 'host.name', 'ip', 'hostname'];

function host(s: FileSpan): string {
  for (const key of hostKeys) {
    const a = s.resource.find((r) => r.key === key);
    if (a) return a.value;
  }
  return '';
}

// The same groups of spans in two time ranges, and how they differ.

import type { Groups } from '../../../api/groups';
import { rowsOf, type GroupRow } from '../groups/model';

const day = 86_400_000;

/** A time in milliseconds since the epoch. */
export interface Period {
  from: number;
  to: number;
}

/** Names of earlier times in the parameter `against`; any other one is `FROM..TO` in ISO 8601. */
export type Earlier = 'day' | 'week' | 'before';

/** The time that a parameter names, for the time that it is compared with. A text that names none is one day earlier. */
export function earlierPeriod(against: string, { from, to }: Period): Period {
  const own = /^(.+)\.\.(.+)$/.exec(against);
  const [start, end] = own ? [Date.parse(own[1]), Date.parse(own[2])] : [NaN, NaN];
  if (start < end) return { from: start, to: end };
  const back = against === 'week' ? 7 * day : against === 'before' ? to - from : day;
  return { from: from - back, to: to - back };
}

/** The choice of a parameter; null for two times of its own. */
export function earlierName(against: string): Earlier | null {
  return against.includes('..') ? null : against === 'week' || against === 'before' ? against : 'day';
}

/** A group in both times; null where it has no spans. */
export interface Change {
  values: (string | null)[];
  where: string;
  now: GroupRow | null;
  then: GroupRow | null;
  /** How much it differs; the order of the table. */
  score: number;
  /** What differs clearly. */
  kinds: Kind[];
}

/** A clear difference. */
export type Kind = 'new' | 'gone' | 'failing' | 'recovered' | 'slower' | 'faster' | 'more' | 'fewer';

const clear = 3; // standard deviations
const slowed = 1.5;
const grown = 2;
const fewCalls = 20;

/** The groups of both answers, the largest difference first. */
export function changesOf(now: Groups, then: Groups, a: Period, b: Period): Change[] {
  const before = new Map(rowsOf(then).map((r) => [r.where, r]));
  const rows: [GroupRow | null, GroupRow | null][] = rowsOf(now).map((r) => {
    const earlier = before.get(r.where) ?? null;
    before.delete(r.where);
    return [r, earlier];
  });
  rows.push(...[...before.values()].map((r): [null, GroupRow] => [null, r]));
  const length = (a.to - a.from) / (b.to - b.from);
  const list = rows.map(([x, y]): Change => ({ values: (x ?? y)!.values, where: (x ?? y)!.where, now: x, then: y, ...compared(x, y, length) }));
  return list.sort((x, y) => y.score - x.score || (y.now?.count ?? 0) - (x.now?.count ?? 0) || (x.where < y.where ? -1 : 1));
}

/** `length` is how much longer the time of `a` is. */
function compared(a: GroupRow | null, b: GroupRow | null, length: number): Pick<Change, 'score' | 'kinds'> {
  if (!a || !b) return { score: (a ?? b)!.count >= fewCalls ? 100 : 1, kinds: [a ? 'new' : 'gone'] };
  const kinds: Kind[] = [];
  const errors = deviations(a, b);
  if (Math.abs(errors) >= clear) kinds.push(errors > 0 ? 'failing' : 'recovered');
  const many = Math.min(a.count, b.count) >= fewCalls;
  const slower = b.p95 > 0 ? a.p95 / b.p95 : 1;
  if (many && slower >= slowed) kinds.push('slower');
  else if (many && slower <= 1 / slowed) kinds.push('faster');
  const more = a.count / (b.count * length);
  if (many && more >= grown) kinds.push('more');
  else if (many && more <= 1 / grown) kinds.push('fewer');
  const doublings = (x: number): number => (many && x > 0 ? Math.abs(Math.log2(x)) : 0);
  return { score: Math.abs(errors) * 2 + doublings(slower) * 4 + doublings(more), kinds };
}

/** By how many standard deviations the shares of errors differ. */
function deviations(a: GroupRow, b: GroupRow): number {
  const all = (a.errors + b.errors) / (a.count + b.count);
  if (all === 0 || all === 1) return 0;
  return (a.errors / a.count - b.errors / b.count) / Math.sqrt(all * (1 - all) * (1 / a.count + 1 / b.count));
}

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
/** Examined spans in both times from which a difference is clear, and failed ones in one of them. */
const few = { calls: 20, errors: 5 };

/** Whether an answer has all groups of its time, so that others have no spans there. */
export function isWhole({ groups, distinct, other }: Groups): boolean {
  return other === 0 && distinct <= groups.count.length;
}

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
  const differs = (x: GroupRow | null, y: GroupRow | null): Pick<Change, 'score' | 'kinds'> =>
    x && y ? compared(x, y, now.share, then.share, length) : x ? only('new', x, now, then, 1 / length) : only('gone', y!, then, now, length);
  const list = rows.map(([x, y]): Change => ({ values: (x ?? y)!.values, where: (x ?? y)!.where, now: x, then: y, ...differs(x, y) }));
  return list.sort((x, y) => y.score - x.score || (y.now?.count ?? 0) - (x.now?.count ?? 0) || (x.where < y.where ? -1 : 1));
}

/** A group that only one answer has: that says something if the other one, of a time `length` as long, is whole and would have had several of its spans. */
function only(kind: Kind, r: GroupRow, { share }: Groups, other: Groups, length: number): Pick<Change, 'score' | 'kinds'> {
  const clearly = isWhole(other) && other.groups.count.length > 0 && r.count * Math.min(share, length * other.share) >= few.calls;
  return clearly ? { score: 100, kinds: [kind] } : { score: 0, kinds: [] };
}

/** `length` is how much longer the time of `a` is, of which `shareA` was examined. */
function compared(a: GroupRow, b: GroupRow, shareA: number, shareB: number, length: number): Pick<Change, 'score' | 'kinds'> {
  const kinds: Kind[] = [];
  const [callsA, callsB] = [a.count * shareA, b.count * shareB];
  if (Math.min(callsA, callsB) < few.calls) return { score: 0, kinds };
  const errors = deviations(callsA, a.errors * shareA, callsB, b.errors * shareB);
  if (Math.abs(errors) >= clear) kinds.push(errors > 0 ? 'failing' : 'recovered');
  const slower = b.p95 > 0 ? a.p95 / b.p95 : 1;
  if (slower >= slowed) kinds.push('slower');
  else if (slower <= 1 / slowed) kinds.push('faster');
  const more = a.count / (b.count * length);
  if (more >= grown) kinds.push('more');
  else if (more <= 1 / grown) kinds.push('fewer');
  return { score: Math.abs(errors) * 2 + Math.abs(Math.log2(slower || 1)) * 4 + Math.abs(Math.log2(more)), kinds };
}

/** By how many standard deviations the shares of errors differ; 0 with few errors. */
function deviations(callsA: number, errorsA: number, callsB: number, errorsB: number): number {
  const all = (errorsA + errorsB) / (callsA + callsB);
  if (all === 1 || Math.max(errorsA, errorsB) < few.errors) return 0;
  return (errorsA / callsA - errorsB / callsB) / Math.sqrt(all * (1 - all) * (1 / callsA + 1 / callsB));
}

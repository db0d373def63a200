import type { ErrorGroup, Errors } from '../../api/types';
import { millis } from '../../shell/format';
import { t } from '../../shell/text';

/** How a group of errors develops in the range. */
export type Trend = 'new' | 'growing' | 'usual';

const quietShare = 0.15; // of the range without the error before it counts as new
const minExamined = 0.5; // of the range
const growth = 3; // last third against first third
const minGrown = 5;

/** Claims nothing if less than half of the range was examined. `new`: first seen well after the beginning of what was examined. */
export function trendOf(g: ErrorGroup, data: Errors, start: number, end: number): Trend {
  const from = data.complete ? start : Math.max(start, millis(data.since));
  if (end - from < (end - start) * minExamined) return 'usual';
  if (millis(g.first) > from + (end - from) * quietShare) return 'new';
  const third = Math.floor(g.points.length / 3);
  const sum = (list: number[]): number => list.reduce((a, b) => a + b, 0);
  const [before, after] = [sum(g.points.slice(0, third)), sum(g.points.slice(-third))];
  return data.complete && after >= minGrown && after >= before * growth ? 'growing' : 'usual';
}

const rank: Record<Trend, number> = { new: 0, growing: 1, usual: 2 };

/** New and growing groups first, then by count, then the newest. A single new error is no more than usual noise: it stays among the others. */
export function orderGroups(data: Errors, start: number, end: number): ErrorGroup[] {
  const key = (g: ErrorGroup): number => (g.count < minGrown ? rank.usual : rank[trendOf(g, data, start, end)]);
  return [...data.groups].sort((a, b) => key(a) - key(b) || b.count - a.count || millis(b.last) - millis(a.last));
}

const numbers = /\b[\da-f]*\d[\da-f]*\b|\d+/gi;

/** What a group shows below its type: the message, unless the type is nothing but the message without its numbers. */
export function secondLine(g: ErrorGroup): string {
  const repeats = g.message.replace(numbers, 'n') === g.type;
  return repeats || !g.message ? (g.type ? g.operation : t('no message')) : g.message;
}

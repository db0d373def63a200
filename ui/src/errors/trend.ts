import type { ErrorGroup, Errors } from '../api/errors';
import { millis } from '../shell/format';
import { t } from '../shell/text';

/** How a group of errors develops in the range. */
export type Trend = 'new' | 'growing' | 'usual';

const quietShare = 0.15; // of the range without the error before it counts as new
const minExamined = 0.5; // of the range
const growth = 3; // last third against first third, or the range against the time before
const minGrown = 5;

/**
 * Claims nothing if less than half of the range was examined. `new`: first seen well after the beginning of what was examined. If the time before
 * was examined, too: not seen then.
 */
export function trendOf(g: ErrorGroup, data: Errors, start: number, end: number): Trend {
  const { before } = data;
  if (before && g.before === 0 && before.complete && before.examined > 0) return 'new';
  const from = data.complete ? start : Math.max(start, millis(data.since));
  if (end - from < (end - start) * minExamined) return 'usual';
  if (!g.before && millis(g.first) > from + (end - from) * quietShare) return 'new';
  const third = Math.floor(g.points.length / 3);
  const sum = (list: number[]): number => list.reduce((a, b) => a + b, 0);
  const [early, late] = [sum(g.points.slice(0, third)), sum(g.points.slice(-third))];
  const more = before?.complete && g.before ? g.count >= g.before * growth : late >= early * growth;
  return data.complete && late >= minGrown && more ? 'growing' : 'usual';
}

const rank: Record<Trend, number> = { new: 0, growing: 1, usual: 2 };

/** New and growing groups first, then by count, then the newest. A single new error is no more than usual noise: it stays among the others. */
export function orderGroups(data: Errors, start: number, end: number): ErrorGroup[] {
  const key = (g: ErrorGroup): number => (g.count < minGrown ? rank.usual : rank[trendOf(g, data, start, end)]);
  return [...data.groups].sort((a, b) => key(a) - key(b) || b.count - a.count || millis(b.last) - millis(a.last));
}

/** What failed, in one text: the type, else the message without its variable parts, else the operation. */
export function titleOf(g: ErrorGroup): string {
  return g.type || g.pattern || g.operation;
}

/** What a group shows below its title. */
export function secondLine(g: ErrorGroup): string {
  if (g.type) return g.message || g.operation;
  return g.pattern ? g.operation : t('no message');
}

/** What tells a group from all others, short enough for a URL. */
export function groupID(g: ErrorGroup): string {
  const text = [g.service, g.type, g.pattern, g.frame, g.pattern || g.frame ? '' : g.operation].join('\n');
  let h = 0xcbf29ce484222325n; // FNV-1a
  for (const b of new TextEncoder().encode(text)) h = BigInt.asUintN(64, (h ^ BigInt(b)) * 0x100000001b3n);
  return h.toString(36);
}

import type { TraceSummary } from '../../api/types';
import { millis } from '../../shell/format';

/** Columns by which loaded traces can be sorted. */
export type SortKey = 'start' | 'duration' | 'spans' | 'matched';

const values: Record<SortKey, (t: TraceSummary) => number> = {
  start: (t) => millis(t.start),
  duration: (t) => t.duration,
  spans: (t) => t.spans,
  matched: (t) => t.matched?.spans ?? 0,
};

/** The column and direction of the parameter `sort`; null for the newest first. */
export function parseSort(text: string): { key: SortKey; down: boolean } | null {
  const key = text.replace(/^-/, '');
  return key in values ? { key: key as SortKey, down: text[0] === '-' } : null;
}

/** Sorts loaded traces, by default the newest first. The server lists them by their newest matching span, which may start long after the trace. */
export function sortTraces(traces: TraceSummary[], sort: string): TraceSummary[] {
  const newest = [...traces].sort((a, b) => values.start(b) - values.start(a));
  const by = parseSort(sort);
  if (!by) return newest;
  const value = values[by.key];
  return newest.sort((a, b) => (by.down ? value(b) - value(a) : value(a) - value(b)));
}

/** The parameter `sort` after a click on a column: down, up, then newest first again. */
export function nextSort(text: string, key: SortKey): string {
  if (text === '-' + key) return key;
  return text === key ? '' : '-' + key;
}

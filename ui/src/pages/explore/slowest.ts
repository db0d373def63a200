import { useMemo, useState } from 'preact/hooks';
import type { Heatmap } from '../../api/types';
import { addCondition } from '../../query/edit';
import { durationText, round3 } from '../../query/field';
import { capable } from '../../shell/config';
import { useRequest } from '../../shell/use-request';
import type { Run } from './run';
import { pageSize } from './use-search';

const maxListed = 500;

/** The part of a search that has its slowest traces. */
export interface Slowest {
  run: Run;
  /** Number of traces to request. */
  limit: number;
  /** Number of traces to show: all that are slower are known. */
  shown: number;
  /** Shows more, or null if all are shown or there would be too many. */
  more: (() => void) | null;
}

/**
 * A duration in nanoseconds which at least `n` of the counted traces reach, or fewer if more than `most` would; with their number.
 * Null if that cannot be told.
 */
export function slowestBound(h: Heatmap, n: number, most: number): { ns: number; traces: number } | null {
  const counts = new Map<number, number>();
  h.cells.bucket.forEach((b, i) => counts.set(b, (counts.get(b) ?? 0) + h.cells.count[i] / h.share));
  let best: { ns: number; traces: number } | null = null;
  let traces = 0;
  for (const b of [...counts.keys()].sort((a, c) => c - a)) {
    traces += counts.get(b)!;
    if (traces > most) break;
    best = { ns: 2 ** (b / h.bucketsPerOctave), traces: Math.round(traces) };
    if (traces >= n) break;
  }
  return best;
}

/** The server lists the newest traces first. To list the slowest, only those above a duration are searched for, which the counts of all traces give. */
export function useSlowest(run: Run, sort: string): Slowest | null {
  const wanted = sort === '-duration' && capable('aggregates');
  const [, drawAgain] = useState(0);
  const n = lengths.get(run) ?? pageSize;
  const { data, loading } = useRequest<Heatmap>(wanted ? 'heatmap' : null, { q: run.q, start: run.start, end: run.end, of: 'traces', columns: 2, exemplars: 1 }, { maxAge: 300_000 });
  const bound = useMemo(() => (data && !loading && data.of === 'traces' ? slowestBound(data, n, maxListed) : null), [data, loading, n]);
  const part = useMemo(() => (bound ? partOf(run, bound.ns) : null), [run, bound?.ns]);
  if (!wanted || !bound || !part) return null;
  const more = (): void => {
    lengths.set(run, n + pageSize);
    drawAgain(n);
  };
  return { run: part, limit: maxListed, shown: n, more: n + pageSize <= maxListed && data!.estimatedSpans > n ? more : null };
}

// So that a return to the page shows as many traces.
const lengths = new WeakMap<Run, number>();

// By bound. The same object again, so that a return to the page finds its search.
const parts = new WeakMap<Run, Map<number, Run>>();

function partOf(run: Run, ns: number): Run {
  const known = parts.get(run) ?? new Map<number, Run>();
  parts.set(run, known);
  const part = known.get(ns) ?? { ...run, q: addCondition(run.q, 'trace.duration', '>=', durationText(round3(ns, Math.floor))) };
  known.set(ns, part);
  return part;
}

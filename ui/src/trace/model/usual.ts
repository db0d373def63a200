// What is usual for the spans of a trace, from the durations of their operations.

import type { Baseline } from '../../api/baseline';
import { isAsync } from './path';
import type { TraceModel, Usual } from './types';

/** Calls from which a percentile is shown, and from which a span can be above p99. */
export const minCalls = { percentile: 20, unusual: 100 };

/** Share of the excess of a span from which spans below it are its cause. */
const causeShare = 0.5;

/** Compares the spans of a trace with the durations of their operations. */
export function buildUsual(model: TraceModel, baseline: Baseline): Usual {
  const { operations: o, start, end } = baseline;
  const usual: Usual = {
    of: operationOf(model, baseline), p50: Float64Array.from(o.p50), p95: Float64Array.from(o.p95), p99: Float64Array.from(o.p99),
    calls: Float64Array.from(o.calls), bucket: o.bucket, counts: o.counts, mark: new Uint8Array(model.spans), start, end,
  };
  markSpans(model, usual);
  return usual;
}

/** Operation of each span, or -1. */
function operationOf(model: TraceModel, { operations: o }: Baseline): Int32Array {
  const numbers = (list: string[]): Map<string, number> => new Map(list.map((text, i) => [text, i]));
  const [services, names] = [numbers(model.services), numbers(model.names)];
  const width = model.names.length;
  const index = new Map<number, number>();
  o.service.forEach((service, i) => {
    const [s, n] = [services.get(service), names.get(o.name[i])];
    if (s !== undefined && n !== undefined) index.set((s * width + n) * 8 + Number(o.kind[i]), i);
  });
  return model.service.map((s, i) => index.get((s * width + model.name[i]) * 8 + model.kind[i]) ?? -1);
}

/** Sets `mark`: a span above p99 is the cause if spans below it do not explain at least half of what it takes more than p50. */
function markSpans(model: TraceModel, u: Usual): void {
  const below = new Float64Array(model.spans); // excess of the spans below
  for (let i = model.spans - 1; i >= 0; i--) {
    const op = u.of[i];
    const time = model.end[i] - model.start[i];
    let excess = below[i];
    if (op >= 0 && u.calls[op] >= minCalls.unusual && time > u.p99[op]) {
      const own = time - u.p50[op];
      u.mark[i] = below[i] < causeShare * own ? 2 : 1;
      excess = Math.max(own, excess);
    }
    const p = model.parent[i];
    if (p >= 0 && !isAsync(model, i)) below[p] += excess;
  }
}

/** Share of the calls of its operation that take at most as long as a span, or null if there are too few calls. */
export function percentileOf(model: TraceModel, u: Usual, span: number): number | null {
  const op = u.of[span];
  if (op < 0 || u.calls[op] < minCalls.percentile) return null;
  const position = 8 * Math.log2(Math.max(1, model.end[span] - model.start[span]));
  const bucket = Math.floor(position) - u.bucket[op];
  const counts = u.counts[op];
  let before = 0;
  for (let b = 0; b < Math.min(bucket, counts.length); b++) before += counts[b];
  const within = bucket >= 0 && bucket < counts.length ? counts[bucket] * (position - Math.floor(position)) : 0;
  return (before + within) / u.calls[op];
}

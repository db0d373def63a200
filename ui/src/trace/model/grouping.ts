// Groups of spans with the same values of one or two keys, and their totals.

import { t } from '../../shell/text';
import { flag, kindNames, type AttributeValues, type CriticalPath, type TraceModel } from './types';

/** Keys that every span has, named as in searches. Others are attributes: `span.KEY` or `resource.KEY`. */
export const ownKeys = ['service', 'name', 'kind', 'status'] as const;

/** Whether a key is an attribute, whose values have to be loaded. */
export function isAttribute(key: string): boolean {
  return /^(span|resource)\../.test(key);
}

type Source = Pick<TraceModel, 'spans' | 'services' | 'names' | 'service' | 'peer' | 'name' | 'kind' | 'flags' | 'subtree' | 'start' | 'end'>;

/** Values of a key of `ownKeys`. */
export function ownValues(m: Source, key: string): AttributeValues {
  const value = new Int32Array(m.spans);
  switch (key) {
    case 'service':
      for (let i = 0; i < m.spans; i++) value[i] = m.peer[i] >= 0 ? m.peer[i] : m.service[i];
      return { values: m.services, value };
    case 'name': return { values: m.names, value: m.name };
    case 'kind': return { values: ['unspecified', ...kindNames.slice(1)], value: Int32Array.from(m.kind) };
    case 'status':
      for (let i = 0; i < m.spans; i++) value[i] = m.flags[i] & flag.error ? 1 : 0;
      return { values: [t('no error'), t('error')], value };
  }
  return { values: [], value: value.fill(-1) };
}

/** Spans with equal values, in the order of their first spans. */
export interface Grouping {
  /** For each group and key: index of the value, or -1 for none. */
  key: Int32Array[];
  /** Spans of group g: members[offset[g]] to members[offset[g+1]-1]. */
  offset: Int32Array;
  members: Int32Array;
}

/** Groups spans by the values of the columns. */
export function groupBy(columns: AttributeValues[], spans: Int32Array): Grouping {
  const numbers = new Map<number, number>();
  const group = new Int32Array(spans.length);
  const first: number[] = [];
  const sizes: number[] = [];
  const wide = (columns[1]?.values.length ?? 0) + 1;
  spans.forEach((span, i) => {
    const id = (columns[0].value[span] + 1) * wide + (columns[1] ? columns[1].value[span] + 1 : 0);
    let g = numbers.get(id);
    if (g === undefined) {
      numbers.set(id, (g = first.length));
      first.push(span);
      sizes.push(0);
    }
    sizes[g]++;
    group[i] = g;
  });
  const offset = new Int32Array(first.length + 1);
  sizes.forEach((n, g) => { offset[g + 1] = offset[g] + n; });
  const members = new Int32Array(spans.length);
  const next = offset.slice();
  spans.forEach((span, i) => { members[next[group[i]]++] = span; });
  return { key: columns.map((c) => Int32Array.from(first, (span) => c.value[span])), offset, members };
}

/** Totals of each group. Durations are nanoseconds. */
export interface Totals {
  count: Float64Array;
  errors: Float64Array;
  /** Sum of the durations. The time of a span below another of the group counts once. */
  total: Float64Array;
  /** Own time on the critical path, and off it. */
  onPath: Float64Array;
  offPath: Float64Array;
  p50: Float64Array;
  p95: Float64Array;
}

/** Own time of each span on the critical path, with its gaps. */
export function timeOnPath(path: CriticalPath, spans: number): Float64Array {
  const time = new Float64Array(spans);
  for (let s = 0; s < path.span.length; s++) if (path.span[s] >= 0) time[path.span[s]] += path.to[s] - path.from[s];
  return time;
}

/** Adds up the spans of each group. Quantiles are durations that occur (nearest rank). */
export function totalsOf(m: Source, g: Grouping, self: Float64Array, onPath: Float64Array): Totals {
  const n = g.offset.length - 1;
  const make = (): Float64Array => new Float64Array(n);
  const item: Totals = { count: make(), errors: make(), total: make(), onPath: make(), offPath: make(), p50: make(), p95: make() };
  for (let i = 0; i < n; i++) {
    const spans = g.members.subarray(g.offset[i], g.offset[i + 1]);
    const durations = new Float64Array(spans.length);
    let [outer, reach] = [0, 0]; // end of the subtree of the last span that is not below another of the group, and how long this one and those below it last
    spans.forEach((span, k) => {
      durations[k] = m.end[span] - m.start[span];
      const nested = span < outer;
      item.total[i] += Math.max(0, m.end[span] - (nested ? Math.max(m.start[span], reach) : m.start[span]));
      reach = nested ? Math.max(reach, m.end[span]) : m.end[span];
      if (!nested) outer = span + m.subtree[span];
      item.onPath[i] += onPath[span];
      item.offPath[i] += Math.max(0, self[span] - onPath[span]);
      if (m.flags[span] & flag.error) item.errors[i]++;
    });
    durations.sort();
    item.count[i] = spans.length;
    item.p50[i] = quantile(durations, 0.5);
    item.p95[i] = quantile(durations, 0.95);
  }
  return item;
}

/** Quantile of sorted numbers. */
export function quantile(sorted: Float64Array, q: number): number {
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? 0;
}

/** Rank of each text in alphabetical order, for sorting by numbers. */
export function ranksOf(texts: string[]): Int32Array {
  const rank = new Int32Array(texts.length);
  texts.map((_, i) => i).sort((a, b) => (texts[a] < texts[b] ? -1 : texts[a] > texts[b] ? 1 : a - b)).forEach((at, r) => { rank[at] = r; });
  return rank;
}

/** Indexes sorted by numbers; equal ones keep their order. */
export function sortedBy(list: Int32Array, key: (i: number) => number, descending: boolean): Int32Array {
  const keys = Float64Array.from(list, key);
  const order = Int32Array.from(list, (_, i) => i);
  const sign = descending ? -1 : 1;
  order.sort((a, b) => sign * (keys[a] - keys[b]) || a - b);
  return order.map((i) => list[i]);
}

// Repeated siblings: at least `minGroup` children of one span with the same service and operation.

import { flag, type Groups, type TraceModel } from './types';

/** Minimum number of equal siblings that become one row. */
export const minGroup = 20;

type Source = Pick<TraceModel, 'parent' | 'subtree' | 'service' | 'name' | 'peer' | 'start' | 'end' | 'flags' | 'names' | 'services'>;

/** Finds the groups of a trace. */
export function buildGroups(m: Source): Groups {
  const of = new Int32Array(m.parent.length).fill(-1);
  const lists: number[][] = [];
  for (let i = -1; i < m.parent.length; i++) {
    const last = i < 0 ? m.parent.length : i + m.subtree[i];
    if (last - i - 1 < minGroup) continue;
    for (const list of repeated(m, i + 1, last)) {
      for (const span of list) of[span] = lists.length;
      lists.push(list);
    }
  }
  return { of, ...measure(m, lists) };
}

/** Lists of equal siblings among those from `first` on. */
function repeated(m: Source, first: number, last: number): number[][] {
  let children = 0;
  for (let c = first; c < last; c += m.subtree[c]) children++;
  if (children < minGroup) return [];
  const byKey = new Map<number, number[]>();
  for (let c = first; c < last; c += m.subtree[c]) {
    const key = (m.service[c] * m.names.length + m.name[c]) * (m.services.length + 1) + m.peer[c] + 1;
    const list = byKey.get(key);
    if (list) list.push(c);
    else byKey.set(key, [c]);
  }
  return [...byKey.values()].filter((list) => list.length >= minGroup);
}

function measure(m: Source, lists: number[][]): Omit<Groups, 'of'> {
  const g = {
    offset: new Int32Array(lists.length + 1), members: new Int32Array(lists.reduce((n, l) => n + l.length, 0)),
    sum: new Float64Array(lists.length), p50: new Float64Array(lists.length), max: new Float64Array(lists.length), errors: new Int32Array(lists.length),
  };
  lists.forEach((list, i) => {
    g.members.set(list, g.offset[i]);
    g.offset[i + 1] = g.offset[i] + list.length;
    const durations = Float64Array.from(list, (s) => m.end[s] - m.start[s]).sort();
    g.sum[i] = durations.reduce((a, b) => a + b, 0);
    g.p50[i] = durations[Math.ceil(durations.length / 2) - 1];
    g.max[i] = durations[durations.length - 1];
    g.errors[i] = list.filter((s) => m.flags[s] & (flag.error | flag.errorBelow)).length;
  });
  return g;
}

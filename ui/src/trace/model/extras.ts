// What the views beside the timeline need of every span: its own time, and its lane in the flame graph.

import type { Extras, TraceModel } from './types';

type Source = Pick<TraceModel, 'spans' | 'subtree' | 'start' | 'end' | 'parent'>;

/** Siblings that run at the same time, above which a lane is not searched for but added: keeps the time linear. */
const maxActive = 512;

/**
 * Lanes below that of the parent, such that no two subtrees overlap, and own times: what no child covers. The subtree of
 * a span has adjacent lanes. It does not recurse, because traces can be deep.
 */
export function buildExtras(m: Source): Extras {
  const low = m.start.slice(); // of the subtree
  const high = m.end.slice();
  const height = new Int32Array(m.spans).fill(1);
  const lane = new Int32Array(m.spans);
  const self = new Float64Array(m.spans);
  for (let i = m.spans - 1; i >= 0; i--) {
    const children = siblings(m, i + 1, i + m.subtree[i]);
    self[i] = ownTime(m, i, children);
    for (const c of children) {
      low[i] = Math.min(low[i], low[c]);
      high[i] = Math.max(high[i], high[c]);
    }
    height[i] += place(children, low, high, height, lane);
  }
  const lanes = place(siblings(m, 0, m.spans), low, high, height, lane);
  for (let i = 0; i < m.spans; i++) if (m.parent[i] >= 0) lane[i] += lane[m.parent[i]] + 1;
  return { lane, lanes, self };
}

function siblings(m: Source, first: number, last: number): number[] {
  const list: number[] = [];
  for (let c = first; c < last; c += m.subtree[c]) list.push(c);
  return list;
}

/** Sorts unless the list is in order, which it nearly always is. */
function sortBy(list: number[], key: Float64Array): number[] {
  for (let i = 1; i < list.length; i++) if (key[list[i]] < key[list[i - 1]]) return list.slice().sort((a, b) => key[a] - key[b] || a - b);
  return list;
}

function ownTime(m: Source, span: number, children: number[]): number {
  let own = m.end[span] - m.start[span];
  let until = m.start[span];
  for (const c of sortBy(children, m.start)) {
    const from = Math.max(m.start[c], until);
    const to = Math.min(m.end[c], m.end[span]);
    if (to <= from) continue;
    own -= to - from;
    until = to;
  }
  return own;
}

/** Lanes that a subtree takes until a time. */
interface Block {
  lane: number;
  height: number;
  until: number;
}

/** Gives siblings lanes relative to the first one below their parent. Returns the number of lanes. */
function place(list: number[], low: Float64Array, high: Float64Array, height: Int32Array, lane: Int32Array): number {
  let active: Block[] = []; // by lane
  let top = 0;
  let added = 0;
  for (const c of sortBy(list, low)) {
    if (active.length < maxActive || ++added % maxActive === 0) active = active.filter((b) => b.until > low[c]);
    const at = active.length < maxActive ? gap(active, height[c]) : active.length;
    const before = active[at - 1];
    lane[c] = active.length < maxActive ? (before ? before.lane + before.height : 0) : top;
    active.splice(at, 0, { lane: lane[c], height: height[c], until: high[c] });
    top = Math.max(top, lane[c] + height[c]);
  }
  return top;
}

/** Position of the first gap of a height between blocks. */
function gap(active: Block[], height: number): number {
  let free = 0;
  for (let i = 0; i < active.length; i++) {
    if (active[i].lane - free >= height) return i;
    free = active[i].lane + active[i].height;
  }
  return active.length;
}

// Layers of a graph: edges lead from left to right, and cross each layer between their ends at a place of their own.

import type { GraphInput } from './graph-layout';

/** Height in pixels that the label of an edge takes. */
const labelHeight = 30;

/** Vertices are the nodes and, after them, the places of edges in layers. */
export interface Layers {
  /** Vertices from top to bottom, by layer from left to right. */
  rows: number[][];
  /** Neighbors in the layers to the left and to the right. */
  left: number[][];
  right: number[][];
  width: number[];
  height: number[];
  /** Vertices of each edge from left to right; none for edges from a node to itself. */
  chains: number[][];
  /** Vertex of the label of each edge, -1 for none. */
  labels: number[];
}

/** Puts nodes in layers. Labels are in layers between those of nodes. */
export function layersOf(g: GraphInput): Layers {
  const n = g.widths.length;
  const order = depthFirst(g);
  const layer = layerOfNodes(g, order);
  const step = g.labels?.some((w) => w > 0) ? 2 : 1;
  const out: Layers = { rows: [], left: lists(n), right: lists(n), width: [...g.widths], height: [...g.heights], chains: [], labels: Array.from(g.from, () => -1) };
  const put = (v: number, at: number): void => void (out.rows[at] ??= []).push(v);
  for (let at = 0, most = Math.max(0, ...layer) * step; at <= most && n > 0; at++) out.rows[at] = [];
  for (const v of order) put(v, layer[v] * step);
  g.from.forEach((from, e) => {
    const to = g.to[e];
    out.chains[e] = [];
    if (from === to) return;
    const [a, b] = layer[from] < layer[to] ? [from, to] : [to, from];
    const middle = layer[b] * step - 1 - 2 * Math.floor(((layer[b] - layer[a]) * step) / 4);
    let before = a;
    out.chains[e].push(a);
    for (let at = layer[a] * step + 1; at < layer[b] * step; at++) {
      const v = out.width.push(at === middle && step === 2 ? g.labels![e] : 0) - 1;
      out.height.push(out.width[v] > 0 ? labelHeight : 0);
      if (out.width[v] > 0) out.labels[e] = v;
      out.left.push([]);
      out.right.push([]);
      put(v, at);
      join(out, before, v);
      out.chains[e].push(v);
      before = v;
    }
    join(out, before, b);
    out.chains[e].push(b);
  });
  return out;
}

const lists = (n: number): number[][] => Array.from({ length: n }, () => []);

function join(l: Layers, a: number, b: number): void {
  l.right[a].push(b);
  l.left[b].push(a);
}

/** Nodes in an order in which most edges lead from an earlier to a later one: all but those that close a cycle. */
function depthFirst(g: GraphInput): number[] {
  const n = g.widths.length;
  const next = lists(n);
  const callers = new Int32Array(n);
  g.from.forEach((from, e) => {
    if (from === g.to[e]) return;
    next[from].push(g.to[e]);
    callers[g.to[e]]++;
  });
  const seen = new Uint8Array(n);
  const after: number[] = [];
  const visit = (start: number): void => {
    const stack = [[start, 0]];
    seen[start] = 1;
    while (stack.length > 0) {
      const top = stack.at(-1)!;
      const to = next[top[0]][top[1]++];
      if (to === undefined) after.push(stack.pop()![0]);
      else if (!seen[to]) {
        seen[to] = 1;
        stack.push([to, 0]);
      }
    }
  };
  const starts = Array.from({ length: n }, (_, i) => i).sort((a, b) => Math.min(callers[b], 1) - Math.min(callers[a], 1) || b - a);
  while (starts.length > 0) {
    const start = starts.pop()!;
    if (!seen[start]) visit(start);
  }
  return after.reverse();
}

/** The lowest layers for which edges lead to the right; nodes with more edges to the right move there. */
function layerOfNodes(g: GraphInput, order: number[]): Int32Array {
  const n = order.length;
  const rank = new Int32Array(n);
  order.forEach((v, i) => { rank[v] = i; });
  const [left, right] = [lists(n), lists(n)];
  g.from.forEach((from, e) => {
    const to = g.to[e];
    if (from === to) return;
    const [a, b] = rank[from] < rank[to] ? [from, to] : [to, from];
    right[a].push(b);
    left[b].push(a);
  });
  const layer = new Int32Array(n);
  for (const v of order) layer[v] = left[v].reduce((most, u) => Math.max(most, layer[u] + 1), 0);
  for (const v of order.toReversed()) {
    if (right[v].length > left[v].length) layer[v] = right[v].reduce((least, u) => Math.min(least, layer[u] - 1), Infinity);
  }
  return layer;
}

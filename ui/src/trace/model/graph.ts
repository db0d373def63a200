// The graph of a trace: which services or operations call which.

import { groupBy, type Grouping } from './grouping';
import { flag, type AttributeValues, type TraceModel } from './types';

/** Most nodes of a graph; those with the least time on the critical path are left out. */
export const maxNodes = 200;

/** Nodes and the calls between them. */
export interface TraceGraph {
  groups: Grouping;
  /** Groups that are nodes. */
  nodes: Int32Array;
  /** Groups that are left out. */
  omitted: number;
  /** Edges by index in `nodes`. Calls within a node are no edges. */
  from: number[];
  to: number[];
  calls: number[];
  errors: number[];
  /** Sum of the durations of the called spans in nanoseconds. */
  time: number[];
}

type Source = Pick<TraceModel, 'spans' | 'parent' | 'start' | 'end' | 'flags'>;

/** Builds the graph of spans by the values of keys. A span whose parent is not shown is called by its nearest shown ancestor. */
export function buildGraph(m: Source, columns: AttributeValues[], spans: Int32Array, weight: Float64Array): TraceGraph {
  const groups = groupBy(columns, spans);
  const n = groups.offset.length - 1;
  const weights = new Float64Array(n);
  const groupOf = new Int32Array(m.spans).fill(-1);
  for (let g = 0; g < n; g++) for (let i = groups.offset[g]; i < groups.offset[g + 1]; i++) {
    groupOf[groups.members[i]] = g;
    weights[g] += weight[groups.members[i]];
  }
  const nodes = Int32Array.from({ length: n }, (_, g) => g).sort((a, b) => weights[b] - weights[a] || a - b).subarray(0, maxNodes).sort();
  const place = new Int32Array(n).fill(-1);
  nodes.forEach((g, i) => { place[g] = i; });
  const graph: TraceGraph = { groups, nodes, omitted: n - nodes.length, from: [], to: [], calls: [], errors: [], time: [] };
  addEdges(m, graph, spans, groupOf.map((g) => (g < 0 ? -1 : place[g])));
  return graph;
}

function addEdges(m: Source, graph: TraceGraph, spans: Int32Array, nodeOf: Int32Array): void {
  const known = new Map<number, number>();
  for (const span of spans) {
    let up = m.parent[span];
    while (up >= 0 && nodeOf[up] < 0) up = m.parent[up];
    const to = nodeOf[span];
    if (up < 0 || to < 0 || nodeOf[up] === to) continue;
    const key = nodeOf[up] * graph.nodes.length + to;
    let edge = known.get(key);
    if (edge === undefined) {
      known.set(key, (edge = graph.from.length));
      graph.from.push(nodeOf[up]);
      graph.to.push(to);
      for (const list of [graph.calls, graph.errors, graph.time]) list.push(0);
    }
    graph.calls[edge]++;
    graph.time[edge] += m.end[span] - m.start[span];
    if (m.flags[span] & flag.error) graph.errors[edge]++;
  }
}

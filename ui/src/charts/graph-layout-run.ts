// Places the nodes of a graph in layers from left to right. Runs in the worker of graph-layout.ts.

import { Graph, layout } from '@dagrejs/dagre';
import type { GraphInput, GraphLayout } from './graph-layout';

const layerGap = 72;
const nodeGap = 26;
const margin = 16;

/** Number of nodes from which a faster, less compact way to choose layers is used. */
const manyNodes = 120;

/** Computes a layout. Edges from a node to itself have no points. */
export function runLayout(input: GraphInput): GraphLayout {
  const g = new Graph({ multigraph: true });
  const n = input.widths.length;
  g.setGraph({ rankdir: 'LR', ranksep: layerGap, nodesep: nodeGap, edgesep: 12, marginx: margin, marginy: margin, ranker: n > manyNodes ? 'longest-path' : 'network-simplex' });
  g.setDefaultEdgeLabel(() => ({}));
  for (let i = 0; i < n; i++) g.setNode(String(i), { width: input.widths[i], height: input.heights[i] });
  input.from.forEach((from, i) => {
    const width = input.labels?.[i] ?? 0;
    if (from !== input.to[i]) g.setEdge(String(from), String(input.to[i]), width ? { width, height: 30, labelpos: 'c' } : {}, String(i));
  });
  layout(g);
  return collect(g, input);
}

function collect(g: Graph, input: GraphInput): GraphLayout {
  const n = input.widths.length;
  const { width = 0, height = 0 } = g.graph() as { width?: number; height?: number };
  const out: GraphLayout = { x: new Float32Array(n), y: new Float32Array(n), starts: new Int32Array(input.from.length + 1), points: new Float32Array(0), width, height };
  for (let i = 0; i < n; i++) {
    const node = g.node(String(i)) as { x: number; y: number };
    out.x[i] = node.x;
    out.y[i] = node.y;
  }
  const points: number[] = [];
  input.from.forEach((from, i) => {
    if (from !== input.to[i]) {
      const edge = g.edge(String(from), String(input.to[i]), String(i)) as { points: { x: number; y: number }[] };
      for (const p of edge.points) points.push(p.x, p.y);
    }
    out.starts[i + 1] = points.length;
  });
  out.points = Float32Array.from(points);
  return out;
}

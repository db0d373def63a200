// Places the nodes of a graph in layers from left to right. Runs in the worker of graph-layout.ts.

import { layersOf, type Layers } from './graph-layers';
import type { GraphInput, GraphLayout } from './graph-layout';
import { orderRows } from './graph-order';
import { placeRows } from './graph-place';

const margin = 16;
/** Pixels between layers, with and without layers for labels between them. */
const [labelGap, layerGap] = [20, 60];

/** Computes a layout. Edges from a node to itself have no points. */
export function runLayout(input: GraphInput): GraphLayout {
  const l = layersOf(input);
  orderRows(l);
  const y = placeRows(l).map((at) => at + margin);
  const n = input.widths.length;
  const x = new Float64Array(l.width.length);
  const half = new Float64Array(l.width.length); // of the layer of a vertex; negative between layers of nodes
  const labeled = input.labels?.some((w) => w > 0) ?? false;
  const gap = labeled ? labelGap : layerGap;
  let right = margin;
  for (const [i, row] of l.rows.entries()) {
    const width = row.reduce((most, v) => Math.max(most, l.width[v]), 0);
    for (const v of row) [x[v], half[v]] = [right + width / 2, labeled && i % 2 === 1 && l.width[v] === 0 ? -1 : width / 2];
    right += width + gap;
  }
  const bottom = l.rows.flat().reduce((most, v) => Math.max(most, y[v] + l.height[v] / 2), 0);
  return { x: Float32Array.from(x.subarray(0, n)), y: Float32Array.from(y.subarray(0, n)), ...edgePoints(input, l, x, y, half), width: Math.max(0, right - gap) + margin, height: bottom + margin };
}

/** Points of edges: from side to side of nodes, and level through the layers between them. */
function edgePoints(input: GraphInput, l: Layers, x: Float64Array, y: Float64Array, half: Float64Array): Pick<GraphLayout, 'points' | 'starts' | 'labels'> {
  const starts = new Int32Array(l.chains.length + 1);
  const points: number[] = [];
  const labels = new Float32Array(2 * l.chains.length);
  l.chains.forEach((chain, e) => {
    const line = chain.flatMap((v, k): number[][] => {
      if (k === 0) return [[x[v] + l.width[v] / 2, y[v]]];
      if (k === chain.length - 1) return [[x[v] - l.width[v] / 2, y[v]]];
      return half[v] < 0 ? [] : [[x[v] - half[v], y[v]], [x[v] + half[v], y[v]]];
    });
    if (chain[0] !== input.from[e]) line.reverse();
    for (const [px, py] of line) points.push(px, py);
    starts[e + 1] = points.length;
    const at = l.labels[e] >= 0 ? l.labels[e] : chain[chain.length >> 1];
    if (chain.length > 0) labels.set(chain.length === 2 ? [(line[0][0] + line[1][0]) / 2, (line[0][1] + line[1][1]) / 2] : [x[at], y[at]], 2 * e);
  });
  return { points: Float32Array.from(points), starts, labels };
}

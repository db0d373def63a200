// Matches the spans of two traces by their call paths.

import { isAsync } from '../trace/model/path';
import { sumSegments } from '../trace/model/sentence';
import { flag, type TraceModel } from '../trace/model/types';
import { rank } from './rank';
import type { Comparison, PathDifference, Side } from './types';

/** Compares two traces. */
export function compareTraces(a: TraceModel, b: TraceModel): Comparison {
  const tree = new PathTree();
  const rows = [tree.add(a), tree.add(b)];
  const order = tree.order();
  const position = new Int32Array(order.length);
  order.forEach((row, i) => { position[row] = i; });
  const parent = Int32Array.from(order, (row) => (tree.parent[row] < 0 ? -1 : position[tree.parent[row]]));
  const depth = new Int32Array(order.length);
  parent.forEach((p, i) => { depth[i] = p < 0 ? 0 : depth[p] + 1; });
  const sides = [a, b].map((model, i) => sideOf(model, rows[i].map((row) => position[row]), order.length));
  const comparison: Comparison = {
    rows: order.length, parent, depth, a: sides[0], b: sides[1], change: new Uint8Array(order.length), impact: new Float64Array(order.length), threshold: 0,
    common: false, parts: pathDifferences(a, b),
  };
  rank(comparison, Math.max(a.duration, b.duration));
  return comparison;
}

/** The call paths of traces: rows in the order in which they were found. */
class PathTree {
  readonly parent: number[] = [];
  private readonly index = new Map<string, number>();
  private readonly words = new Map<string, number>();
  /** Rows below each row (-1: at the top) by their first trace, and which row of the second trace follows which. */
  private readonly below = new Map<number, number[]>();
  private readonly after = new Map<string, number[]>();
  private traces = 0;

  /** Adds a trace, and returns the row of each span. */
  add(model: TraceModel): Int32Array {
    const first = this.traces++ === 0;
    const number = (text: string): number => this.words.get(text) ?? this.words.set(text, this.words.size).size - 1;
    const services = model.services.map(number);
    const names = model.names.map(number);
    const rows = new Int32Array(model.spans);
    const before = new Map<number, number>(); // last row of the trace below each row
    for (let i = 0; i < model.spans; i++) {
      const p = model.parent[i] < 0 ? -1 : rows[model.parent[i]];
      const key = `${p} ${services[model.service[i]]} ${names[model.name[i]]} ${model.kind[i]}`;
      let row = this.index.get(key);
      if (row === undefined) {
        this.index.set(key, (row = this.parent.length));
        this.parent.push(p);
        if (first) push(this.below, p, row);
        else push(this.after, `${p} ${before.get(p) ?? -1}`, row);
      }
      before.set(p, row);
      rows[i] = row;
    }
    return rows;
  }

  /** All rows depth first. Rows of the second trace alone follow the row that precedes them there. */
  order(): number[] {
    const order: number[] = [];
    const stack: number[] = [];
    const expand = (row: number): void => {
      const children: number[] = [];
      const queue = [...(this.after.get(`${row} -1`) ?? []), ...(this.below.get(row) ?? [])].reverse();
      for (let r = queue.pop(); r !== undefined; r = queue.pop()) {
        children.push(r);
        const next = this.after.get(`${row} ${r}`);
        if (next) for (let i = next.length - 1; i >= 0; i--) queue.push(next[i]);
      }
      while (children.length > 0) stack.push(children.pop()!);
    };
    expand(-1);
    for (let row = stack.pop(); row !== undefined; row = stack.pop()) {
      order.push(row);
      expand(row);
    }
    return order;
  }
}

function push<K>(map: Map<K, number[]>, key: K, value: number): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

/** Groups the spans of a trace by row. */
function sideOf(model: TraceModel, row: Int32Array, rows: number): Side {
  const offset = new Int32Array(rows + 1);
  for (const r of row) offset[r + 1]++;
  for (let i = 0; i < rows; i++) offset[i + 1] += offset[i];
  const next = offset.slice();
  const spans = new Int32Array(model.spans);
  for (let i = 0; i < model.spans; i++) spans[next[row[i]]++] = i;
  const side: Side = { offset, spans, time: new Float64Array(rows), own: new Float64Array(rows), errors: new Int32Array(rows) };
  const own = ownTimes(model);
  for (let r = 0; r < rows; r++) {
    const list = spans.subarray(offset[r], offset[r + 1]);
    list.sort((x, y) => model.start[x] - model.start[y] || x - y);
    let until = -Infinity;
    for (const s of list) {
      side.time[r] += Math.max(0, model.end[s] - Math.max(until, model.start[s]));
      until = Math.max(until, model.end[s]);
      side.own[r] += own[s];
      if (model.flags[s] & flag.error) side.errors[r]++;
    }
  }
  return side;
}

/** Time of each span in which no child ran that it waits for. */
function ownTimes(model: TraceModel): Float64Array {
  const { parent, start, end, subtree } = model;
  const own = new Float64Array(parent.length);
  for (let i = 0; i < parent.length; i++) {
    let covered = 0;
    let until = start[i];
    const children: number[] = [];
    for (let c = i + 1; c < i + subtree[i]; c += subtree[c]) if (!isAsync(model, c)) children.push(c);
    children.sort((x, y) => start[x] - start[y]);
    for (const c of children) {
      const last = Math.min(end[c], end[i]);
      covered += Math.max(0, last - Math.max(until, start[c]));
      until = Math.max(until, last);
    }
    own[i] = end[i] - start[i] - covered;
  }
  return own;
}

/** Differences of the critical paths by service, largest first. */
function pathDifferences(a: TraceModel, b: TraceModel): PathDifference[] {
  const sums = new Map<string, PathDifference>();
  const add = (model: TraceModel, sign: number): void => {
    for (const s of sumSegments(model, model.path)) {
      const name = s.service < 0 ? '' : model.services[s.service];
      const key = `${s.kind} ${name}`;
      const sum = sums.get(key) ?? { kind: s.kind, name, time: 0 };
      sum.time += sign * s.time;
      sums.set(key, sum);
    }
  };
  add(a, 1);
  add(b, -1);
  return [...sums.values()].sort((x, y) => Math.abs(y.time) - Math.abs(x.time));
}

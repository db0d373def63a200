// Frames of an icicle: call paths as rectangles, each below its caller.

import type { CallPaths } from '../../../api/explain';

/** What the width of the frames shows: the selected traces, colored by the difference, or one side alone. */
export type IcicleSide = 'difference' | 'selected' | 'rest';

/** Times of the call paths of an explanation: means in nanoseconds, with everything below a path in `total`. */
export interface PathTimes {
  selected: Float64Array;
  rest: Float64Array;
  depth: Int32Array;
}

/** A rectangle; x and width are shares of the whole width. */
export interface Frame {
  path: number;
  depth: number;
  x: number;
  width: number;
}

/** Sums the times of the call paths from the leaves up. */
export function totalsOf(p: CallPaths): PathTimes {
  const n = p.parent.length;
  const out = { selected: Float64Array.from(p.selected.self), rest: Float64Array.from(p.rest.self), depth: new Int32Array(n) };
  for (let i = n - 1; i >= 0; i--) {
    if (p.parent[i] < 0) continue;
    out.selected[p.parent[i]] += out.selected[i];
    out.rest[p.parent[i]] += out.rest[i];
  }
  for (let i = 0; i < n; i++) out.depth[i] = p.parent[i] < 0 ? 0 : out.depth[p.parent[i]] + 1;
  return out;
}

/** Lays out the frames below `root` (-1: all), with its callers above it in full width. Frames narrower than `least` are left out. */
export function framesOf(p: CallPaths, times: PathTimes, side: IcicleSide, root: number, least: number): Frame[] {
  const width = side === 'rest' ? times.rest : times.selected;
  const children = childrenOf(p);
  const frames: Frame[] = [];
  const callers: number[] = [];
  for (let i = root; i >= 0; i = p.parent[i]) callers.unshift(i);
  for (const path of callers) frames.push({ path, depth: times.depth[path], x: 0, width: 1 });
  const tops = children.get(-1) ?? [];
  const whole = root < 0 ? tops.reduce((sum, i) => sum + width[i], 0) : width[root];
  if (whole <= 0) return frames;
  const place = (parent: number, start: number): void => {
    let x = start;
    for (const path of children.get(parent) ?? []) {
      const w = width[path] / whole;
      if (w >= least) {
        frames.push({ path, depth: times.depth[path], x, width: w });
        place(path, x);
      }
      x += w;
    }
  };
  place(root, 0);
  return frames;
}

/** Call paths by the index of their parent. */
export function childrenOf(p: CallPaths): Map<number, number[]> {
  const out = new Map<number, number[]>();
  p.parent.forEach((parent, i) => out.set(parent, [...(out.get(parent) ?? []), i]));
  return out;
}

/** Call paths in the order of a tree: each is followed by those below it. */
export function treeOrder(p: CallPaths): number[] {
  const children = childrenOf(p);
  const out: number[] = [];
  const add = (parent: number): void => {
    for (const i of children.get(parent) ?? []) {
      out.push(i);
      add(i);
    }
  };
  add(-1);
  return out;
}

/** Strength of a color for a change of own time, from -4 (shrank) to 4 (grew); `scale` is the largest change. */
export function shadeOf(change: number, scale: number): number {
  const part = scale > 0 ? Math.abs(change) / scale : 0;
  const level = part > 0.4 ? 4 : part > 0.1 ? 3 : part > 0.02 ? 2 : part > 0.005 ? 1 : 0;
  return change < 0 ? -level : level;
}

/** The largest change of the own time of a path, at least 1 % of the time of the others. */
export function scaleOf(p: CallPaths, times: PathTimes): number {
  let scale = 0;
  let all = 0;
  p.parent.forEach((parent, i) => {
    scale = Math.max(scale, Math.abs(p.selected.self[i] - p.rest.self[i]));
    if (parent < 0) all += times.rest[i];
  });
  return Math.max(scale, all / 100);
}

/** The frame next to another one after an arrow key: caller, first call, or the frame beside it at the same depth. */
export function neighbor(frames: Frame[], p: CallPaths, at: number, key: string): number {
  const current = frames.find((f) => f.path === at);
  if (!current) return frames[0]?.path ?? -1;
  const level = frames.filter((f) => f.depth === current.depth);
  const i = level.indexOf(current);
  switch (key) {
    case 'ArrowUp': return p.parent[at] >= 0 ? p.parent[at] : at;
    case 'ArrowDown': return widest(frames.filter((f) => p.parent[f.path] === at))?.path ?? at;
    case 'ArrowRight': return level[Math.min(i + 1, level.length - 1)].path;
    case 'ArrowLeft': return level[Math.max(i - 1, 0)].path;
    case 'Home': return frames[0].path;
  }
  return -1;
}

function widest(frames: Frame[]): Frame | undefined {
  return frames.reduce<Frame | undefined>((best, f) => (best && best.width >= f.width ? best : f), undefined);
}

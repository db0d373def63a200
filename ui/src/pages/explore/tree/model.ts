// Rows of many traces as one tree.

import type { TreePaths } from '../../../api/tree';

/** A row: a call path, how deep it is, and the number of all paths below it. */
export interface TreeRow {
  path: number;
  depth: number;
  below: number;
  open: boolean;
}

/** Rows that are open at first. */
const openRows = 60;
/** Share of the traces that a path is in to count for the time axis. */
const commonShare = 0.05;
/** Length of the axis beyond the last p50, relative to it. Lines to a p95 beyond are cut. */
const beyond = 1.25;

/** Depths of call paths, and the numbers of paths below them. */
export interface TreeShape {
  /** Children of each path, by start; of -1 those without caller, the most frequent first. */
  children: Map<number, number[]>;
  depth: number[];
  below: number[];
}

/** The shape of the tree. */
export function shapeOf(p: TreePaths): TreeShape {
  const children = new Map<number, number[]>();
  const depth: number[] = [];
  const below = p.parent.map(() => 0);
  p.parent.forEach((parent, i) => {
    depth.push(parent < 0 ? 0 : depth[parent] + 1);
    const list = children.get(parent);
    if (list) list.push(i);
    else children.set(parent, [i]);
  });
  for (let i = p.parent.length - 1; i >= 0; i--) if (p.parent[i] >= 0) below[p.parent[i]] += below[i] + 1;
  for (const list of children.values()) list.sort((a, b) => p.start[a] - p.start[b] || a - b);
  children.get(-1)?.sort((a, b) => p.traces[b] - p.traces[a] || p.start[a] - p.start[b]);
  return { children, depth, below };
}

/** The paths that are folded at first: those at the depth from which there would be too many rows. */
export function foldedAtFirst({ depth, below }: TreeShape): Set<number> {
  const rows: number[] = [];
  for (const d of depth) rows[d] = (rows[d] ?? 0) + 1;
  let shown = 0;
  let deepest = 0;
  while (deepest < rows.length && (deepest < 2 || shown + rows[deepest] <= openRows)) shown += rows[deepest++];
  return new Set(depth.flatMap((d, i) => (d === deepest - 1 && below[i] > 0 ? [i] : [])));
}

/** The rows that are not below a folded one, from the top. */
export function rowsOf({ children, depth, below }: TreeShape, folded: ReadonlySet<number>): TreeRow[] {
  const out: TreeRow[] = [];
  const stack = [...(children.get(-1) ?? [])].reverse();
  for (let path = stack.pop(); path !== undefined; path = stack.pop()) {
    const open = below[path] > 0 && !folded.has(path);
    out.push({ path, depth: depth[path], below: below[path], open });
    if (open) stack.push(...[...children.get(path)!].reverse());
  }
  return out;
}

/** The length of the time axis in nanoseconds: what is common fits, and each quarter is round. */
export function axisOf(p: TreePaths, traces: number): number {
  const end = (of: number[], common: number): number => p.parent.reduce((most, _, i) => (p.traces[i] >= common ? Math.max(most, p.start[i] + of[i]) : most), 0);
  const common = end(p.p95, traces * commonShare) > 0 ? traces * commonShare : 0;
  const quarter = (Math.min(end(p.p95, common), beyond * end(p.p50, common)) || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(quarter));
  return 4 * power * [1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10].find((n) => n * power >= quarter)!;
}

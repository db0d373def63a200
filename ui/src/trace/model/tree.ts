// What follows from the parents: levels, subtrees, roots, errors below.

import { flag } from './types';

/** The tree of a trace. */
export interface Tree {
  depth: Int32Array;
  subtree: Int32Array;
  roots: Int32Array;
}

/** Derives the tree, and sets `flag.errorBelow`. Throws an Error unless the spans are depth first. */
export function buildTree(parent: Int32Array, flags: Uint8Array): Tree {
  checkOrder(parent);
  const n = parent.length;
  const depth = new Int32Array(n);
  const subtree = new Int32Array(n).fill(1);
  const roots: number[] = [];
  for (let i = 0; i < n; i++) {
    const p = parent[i];
    if (p < 0) roots.push(i);
    else depth[i] = depth[p] + 1;
  }
  for (let i = n - 1; i >= 0; i--) {
    const p = parent[i];
    if (p < 0) continue;
    subtree[p] += subtree[i];
    if (flags[i] & (flag.error | flag.errorBelow)) flags[p] |= flag.errorBelow;
  }
  return { depth, subtree, roots: Int32Array.from(roots) };
}

/** Depth first means: the parent of a span is the span before it, or an ancestor of that. */
function checkOrder(parent: Int32Array): void {
  for (let i = 0; i < parent.length; i++) {
    let before = i - 1;
    while (before >= 0 && before !== parent[i]) before = parent[before];
    if (before !== parent[i]) throw new Error(`outline: span ${i} does not follow its parent ${parent[i]}`);
  }
}

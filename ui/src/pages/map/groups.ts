// Groups for maps with many services: by the beginning of names, then by calls.

import { groupBy, merge, type Graph, type MapEdge } from './model';

/** Number of nodes above which services are put together. */
export const maxNodes = 200;

/** Number of groups and nodes to which a large map is reduced. */
const wantedNodes = 80;

/** What is before the first separator of a name: a namespace such as `shop` of `shop/cart`, else a prefix such as `cart` of `cart-db`. */
export function prefixOf(name: string): string {
  return /^(.+?)[/.:]/.exec(name)?.[1] ?? /^(.+?)[-_]/.exec(name)?.[1] ?? '';
}

/** Names the group of each node, "" for none. `open` are names of groups that stay apart, `apart` is a node that does. */
export function groupsOf(g: Graph, open: Set<string>, apart: string): string[] {
  if (g.nodes.length <= maxNodes) return g.nodes.map(() => '');
  const prefixes = g.nodes.map((n) => (n.name === apart ? '' : prefixOf(n.name)));
  const sizes = groupBy(prefixes, (p) => p);
  // A prefix that most names have tells nothing.
  const groups = prefixes.map((p) => (p && sizes.get(p)!.length > 1 && sizes.get(p)!.length <= g.nodes.length / 2 ? p : ''));
  const reduced = new Set(groups).size + groups.filter((p) => p === '').length;
  const all = reduced > maxNodes ? clusters(g, groups, apart) : groups;
  return all.map((name) => (open.has(name) ? '' : name));
}

/** Puts further nodes and groups together, those with the most calls between them first. */
function clusters(g: Graph, groups: string[], apart: string): string[] {
  const parent = g.nodes.map((_, i) => i);
  const sizes = g.nodes.map(() => 1);
  const root = (i: number): number => {
    while (parent[i] !== i) i = parent[i] = parent[parent[i]];
    return i;
  };
  let left = g.nodes.length;
  const join = (a: number, b: number): void => {
    if ((a = root(a)) === (b = root(b))) return;
    parent[b] = a;
    sizes[a] += sizes[b];
    left--;
  };
  const first = new Map<string, number>();
  groups.forEach((name, i) => {
    if (name) join(first.get(name) ?? (first.set(name, i), i), i);
  });
  const most = Math.ceil((2 * g.nodes.length) / wantedNodes);
  const together = (e: MapEdge): boolean => ![e.from, e.to].some((i) => g.nodes[i].name === apart) && sizes[root(e.from)] + sizes[root(e.to)] <= most;
  for (const e of [...g.edges].sort((a, b) => b.calls - a.calls)) if (left > wantedNodes && together(e)) join(e.from, e.to);
  return nameClusters(g, groups, g.nodes.map((_, i) => root(i)));
}

/** Names a cluster by its group if it has only one, else by its service with the most requests. */
function nameClusters(g: Graph, groups: string[], roots: number[]): string[] {
  const members = groupBy(g.nodes.map((_, i) => i), (i) => roots[i]);
  const names = new Map<number, string>();
  for (const [root, list] of members) {
    const known = new Set(list.map((i) => groups[i]));
    const busiest = list.reduce((a, b) => (g.nodes[b].requests > g.nodes[a].requests ? b : a));
    names.set(root, list.length === 1 ? '' : known.size === 1 && groups[list[0]] ? groups[list[0]] : `${g.nodes[busiest].name} …`);
  }
  return roots.map((r) => names.get(r)!);
}

/** The graph with groups instead of their members. */
export function grouped(g: Graph, open: string[], apart: string): Graph {
  return merge(g, groupsOf(g, new Set(open), apart));
}

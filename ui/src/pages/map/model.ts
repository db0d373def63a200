// What the map shows: a graph, from the answer of the server, of which parts can be left out or put together.

import type { Connection, ServiceMap } from '../../api/map';
import { millis } from '../../shell/format';

/** A service, a system without spans of its own, or a group of either. */
export interface MapNode {
  name: string;
  /** It has no spans of its own. */
  peer: boolean;
  connection: Connection;
  requests: number;
  errors: number;
  /** Nanoseconds; of a group the highest of its members. */
  p95: number | null;
  /** Names of the members of a group. */
  members?: string[];
}

/** The calls between two nodes, by index. */
export interface MapEdge {
  from: number;
  to: number;
  calls: number;
  errors: number;
  timed: number;
  /** Nanoseconds; of several edges put together, p95 is the highest, and there is no p50. */
  p50: number | null;
  p95: number | null;
  /** p95 of the day before, in nanoseconds; null if there were too few calls, and of several edges put together. */
  usual: number | null;
  connections: Connection[];
  /** Number of edges that are put together. */
  edges: number;
  /** Calls over edges whose p95 is slow. */
  slowCalls: number;
}

/** Nodes and edges. */
export interface Graph {
  nodes: MapNode[];
  edges: MapEdge[];
  /** Seconds in which the calls were made. */
  seconds: number;
}

/** Share of failed calls from which an edge or a service is an exception. */
export const failing = 0.01;

/** An edge is slow from this multiple of its usual p95, or from these nanoseconds if that is not known. */
const [slowFactor, slow] = [1.5, 1e9];

/** Minimum number of timed calls for a comparison: of the day before, and now. */
const [leastUsual, leastCalls] = [100, 20];

/** Minimum difference from the usual p95 in nanoseconds: clocks and scheduling make up less. */
const leastMore = 1e6;

/** Whether an edge or node is shown as failing. */
export const isFailing = (x: { errors: number }, calls: number): boolean => calls > 0 && x.errors / calls >= failing;

/** Whether an edge is shown as slow: of edges that are put together, those with most of the calls are. */
export const isSlow = (e: MapEdge): boolean => e.slowCalls * 2 > e.calls;

/** Whether the calls of an edge are slower than usual. */
function isSlower(p95: number | null, usual: number | null, timed: number): boolean {
  if (p95 === null || usual === null) return (p95 ?? 0) >= slow;
  return timed >= leastCalls && p95 >= slowFactor * usual && p95 - usual >= leastMore;
}

/** p95 of the edges of an answer by the names of their nodes. */
function usualOf({ nodes, edges }: ServiceMap): Map<string, number> {
  const enough = edges.parent.map((_, i) => i).filter((i) => edges.p95[i] !== null && edges.timed[i] >= leastUsual);
  return new Map(enough.map((i) => [`${nodes.name[edges.parent[i]]}\n${nodes.name[edges.child[i]]}`, edges.p95[i]!]));
}

/** The graph of an answer. `before` is that of the day before. */
export function graphOf(a: ServiceMap, before?: ServiceMap): Graph {
  const { nodes: n, edges: e } = a;
  const known = before && usualOf(before);
  const usual = e.parent.map((from, i) => known?.get(`${n.name[from]}\n${n.name[e.child[i]]}`) ?? null);
  return {
    nodes: n.name.map((name, i) => ({ name, peer: n.peer[i], connection: n.connection[i], requests: n.requests[i], errors: n.errors[i], p95: n.p95[i] })),
    edges: e.parent.map((from, i) => ({
      from, to: e.child[i], calls: e.calls[i], errors: e.errors[i], timed: e.timed[i], p50: e.p50[i], p95: e.p95[i], usual: usual[i], connections: e.connections[i], edges: 1,
      slowCalls: isSlower(e.p95[i], usual[i], e.timed[i]) ? e.calls[i] : 0,
    })),
    seconds: Math.max(1, (millis(a.end) - millis(a.start)) / 1000),
  };
}

/** Keeps some nodes, and the edges for which `wanted` is true. */
export function keep(g: Graph, nodes: (i: number) => boolean, wanted: (e: MapEdge) => boolean = () => true): Graph {
  const index = new Map<number, number>();
  const kept = g.nodes.filter((_, i) => nodes(i) && index.set(i, index.size));
  const edges = g.edges.filter((e) => index.has(e.from) && index.has(e.to) && wanted(e)).map((e) => ({ ...e, from: index.get(e.from)!, to: index.get(e.to)! }));
  return { ...g, nodes: kept, edges };
}

/** Keeps the edges on paths of at most `depth` calls that lead to a service or begin there. 0 keeps all. */
export function surroundings(g: Graph, name: string, depth: number): Graph {
  const center = g.nodes.findIndex((n) => n.name === name);
  if (center < 0 || depth === 0) return g;
  const edges = new Set([...reach(g, center, depth, 'from', 'to'), ...reach(g, center, depth, 'to', 'from')]);
  const nodes = new Set([center, ...[...edges].flatMap((e) => [e.from, e.to])]);
  return keep(g, (i) => nodes.has(i), (e) => edges.has(e));
}

function reach(g: Graph, center: number, depth: number, near: 'from' | 'to', far: 'from' | 'to'): MapEdge[] {
  const leaving = groupBy(g.edges, (e) => e[near]);
  const seen = new Set([center]);
  const found: MapEdge[] = [];
  for (let level = 0, next = [center]; level < depth && next.length > 0; level++) {
    const edges = next.flatMap((i) => leaving.get(i) ?? []);
    found.push(...edges);
    next = edges.map((e) => e[far]).filter((i) => !seen.has(i) && seen.add(i));
  }
  return found;
}

/** Leaves out edges with fewer calls per second, except failing ones. */
export function strong(g: Graph, least: number): Graph {
  return least > 0 ? { ...g, edges: g.edges.filter((e) => e.calls / g.seconds >= least || isFailing(e, e.calls)) } : g;
}

/** Keeps at most `most` nodes: the ends of the edges with the most calls. */
export function busiest(g: Graph, most: number): Graph {
  const nodes = new Set<number>();
  for (const e of [...g.edges].sort((a, b) => b.calls - a.calls)) if (nodes.size < most - 1) nodes.add(e.from).add(e.to);
  return keep(g, (i) => nodes.has(i));
}

/** Separates the nodes without edges. `always` is kept with the others. */
export function connected(g: Graph, always = ''): { graph: Graph; alone: MapNode[] } {
  const used = new Set(g.edges.flatMap((e) => [e.from, e.to]));
  const linked = (i: number): boolean => used.has(i) || g.nodes[i].name === always;
  return { graph: keep(g, linked), alone: g.nodes.filter((_, i) => !linked(i)) };
}

/** Puts nodes together: `of[i]` names the group of node i, or is "" if it stays alone. */
export function merge(g: Graph, of: string[]): Graph {
  const nodes: MapNode[] = [];
  const places = new Map<string, number>();
  const index = g.nodes.map((n, i) => {
    const key = of[i] ? 'group ' + of[i] : 'node ' + n.name;
    const at = places.get(key);
    if (at === undefined) places.set(key, nodes.push(of[i] ? { ...n, name: of[i], members: [n.name] } : n) - 1);
    else nodes[at] = addNode(nodes[at], n);
    return places.get(key)!;
  });
  const edges = new Map<string, MapEdge>();
  for (const e of g.edges) {
    const [from, to] = [index[e.from], index[e.to]];
    if (from === to && e.from !== e.to) continue; // within a group
    const key = `${from} ${to}`;
    const before = edges.get(key);
    edges.set(key, before ? addEdge(before, e) : { ...e, from, to });
  }
  return { ...g, nodes, edges: [...edges.values()] };
}

function addNode(group: MapNode, n: MapNode): MapNode {
  return {
    ...group, peer: group.peer && n.peer, connection: group.connection === n.connection ? n.connection : '', requests: group.requests + n.requests,
    errors: group.errors + n.errors, p95: highest(group.p95, n.p95), members: [...group.members!, n.name],
  };
}

function addEdge(sum: MapEdge, e: MapEdge): MapEdge {
  return {
    ...sum, calls: sum.calls + e.calls, errors: sum.errors + e.errors, timed: sum.timed + e.timed, p50: null, p95: highest(sum.p95, e.p95), usual: null,
    connections: [...new Set([...sum.connections, ...e.connections])], edges: sum.edges + e.edges, slowCalls: sum.slowCalls + e.slowCalls,
  };
}

function highest(a: number | null, b: number | null): number | null {
  return a === null || b === null ? a ?? b : Math.max(a, b);
}

/** Items by key, in order. */
export function groupBy<T, K>(items: T[], key: (item: T) => K): Map<K, T[]> {
  const out = new Map<K, T[]>();
  for (const item of items) {
    const k = key(item);
    const list = out.get(k);
    if (list) list.push(item);
    else out.set(k, [item]);
  }
  return out;
}

// From the whole map to what is drawn.

import { grouped, maxNodes } from './groups';
import { shorten } from '../../shell/cut';
import { serviceLabel } from '../../shell/service';
import { busiest, connected, isFailing, isSlow, strong, surroundings, type Graph, type MapEdge, type MapNode } from './model';

/** What the user has chosen. */
export interface Choice {
  focus: string;
  /** 0 for all. */
  depth: number;
  /** Calls per second of an edge: 0 chooses them, a negative number keeps all. */
  least: number;
  /** Names of groups that are open. */
  groups: string[];
}

/** What is drawn. */
export interface Picture {
  graph: Graph;
  /** The edges of the table: those of services, without groups, also weak ones. */
  table: Graph;
  /** Services without edges. */
  alone: MapNode[];
  /** The drawing with its weak edges. */
  whole: Graph;
  /** Calls per second from which edges are drawn. */
  least: number;
  /** Whether services are put together. */
  grouped: boolean;
}

/** The part of a map that is drawn. */
export function pictureOf(all: Graph, c: Choice): Picture {
  const table = surroundings(all, c.focus, c.depth);
  const { graph, alone } = connected(table, c.focus);
  const together = grouped(graph, c.groups, c.focus);
  // If all calls are within groups, the groups tell nothing.
  const whole = together.edges.length > 0 ? together : busiest(graph, maxNodes);
  const least = c.least === 0 ? automatic(whole) : Math.max(0, c.least);
  return { graph: connected(strong(whole, least), c.focus).graph, table, alone, whole, least, grouped: graph.nodes.length > maxNodes };
}

/** Calls per second from which edges can be drawn. */
export const thresholds = [0, 0.01, 0.1, 1, 10, 100];

/** Number of edges above which weak ones are left out, unless the user wants them. */
const manyEdges = 250;

/** The lowest threshold that leaves few edges; all edges if none is left then. */
function automatic(g: Graph): number {
  const least = thresholds.find((l) => strong(g, l).edges.length <= manyEdges) ?? thresholds.at(-1)!;
  return strong(g, least).edges.length > 0 ? least : 0;
}

/** What the width of an edge stands for. */
export type Metric = 'requests' | 'errors' | 'p95';

/** Value of an edge for a metric. */
export function valueOf(e: MapEdge, metric: Metric): number {
  return metric === 'requests' ? e.calls : metric === 'errors' ? e.errors : e.p95 ?? 0;
}

/** Width of an edge in pixels, from 1 to 8, on a logarithmic scale to the largest value. */
export function widthOf(value: number, largest: number): number {
  return value <= 0 || largest <= 0 ? 1 : Math.max(1, 8 + Math.log2(value / largest));
}

/** Whether an edge always has a label. In small maps, edges of the focus have one, too. */
export function isLabeled(g: Graph, e: MapEdge, focus: string): boolean {
  if (isFailing(e, e.calls) || isSlow(e)) return true;
  return focus !== '' && g.edges.length <= 60 && (g.nodes[e.from].name === focus || g.nodes[e.to].name === focus);
}

/** Width of a node in pixels. */
export function nodeWidth(n: MapNode): number {
  const least = n.members ? minGroup : n.errors > 0 ? minFailing : minName;
  return Math.min(maxName, Math.max(least, n.name.length)) * 7 + 40;
}

/** Characters: a failing node has its share of errors beside its rate, a group the number of its services. */
const [minName, minFailing, minGroup] = [12, 17, 20];
const maxName = 24;

/** A name that fits into a node. */
export function shortName(name: string): string {
  return shorten(serviceLabel(name), maxName);
}

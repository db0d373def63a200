import { useEffect, useMemo, useState } from 'preact/hooks';
import { layoutGraph, type GraphLayout } from '../../charts/graph-layout';
import type { Graph } from './model';
import { isLabeled, nodeWidth } from './picture';

/** Height of a node in pixels. */
export const nodeHeight = 42;

/** Width that the label of an edge takes in pixels. */
const labelWidth = 58;

/** A graph and where its parts are. */
export interface Placed {
  graph: Graph;
  layout: GraphLayout;
  widths: Float32Array;
  /** Changes when nodes or edges come or go, not with their numbers. */
  shape: string;
}

/** Lays out a graph in the worker. The last layout stays until the next one is there; new numbers alone need none. */
export function useLayout(graph: Graph, focus: string): { placed: Placed | null; busy: boolean; error: Error | null } {
  const labels = useMemo(() => Float32Array.from(graph.edges, (e) => (isLabeled(graph, e, focus) ? labelWidth : 0)), [graph, focus]);
  const shape = useMemo(() => shapeOf(graph, labels), [graph, labels]);
  const [state, setState] = useState<{ placed: Placed | null; error: Error | null }>({ placed: null, error: null });
  useEffect(() => {
    const abort = new AbortController();
    const widths = Float32Array.from(graph.nodes, nodeWidth);
    const heights = new Float32Array(graph.nodes.length).fill(nodeHeight);
    const input = { widths, heights, from: Int32Array.from(graph.edges, (e) => e.from), to: Int32Array.from(graph.edges, (e) => e.to), labels };
    performance.mark('map-layout-start');
    layoutGraph(input, abort.signal).then(
      (layout) => {
        performance.measure('map-layout', 'map-layout-start');
        setState({ placed: { graph, layout, widths, shape }, error: null });
      },
      (e: unknown) => { if (!abort.signal.aborted) setState((s) => ({ ...s, error: e as Error })); },
    );
    return () => abort.abort();
  }, [shape]);
  const { placed, error } = state;
  return { placed: placed && placed.shape === shape ? { ...placed, graph } : placed, busy: placed?.shape !== shape && !error, error };
}

function shapeOf(graph: Graph, labels: Float32Array): string {
  return [graph.nodes.map((n) => n.name + (n.members ? '+' : '') + (n.errors > 0 ? '!' : '')).join('\n'), graph.edges.map((e) => `${e.from}>${e.to}`).join(), labels.join()].join('\n\n');
}

// Layout of graphs in a worker of its own, which is loaded with the first graph.

import { t } from '../shell/text';

/** A graph: sizes of its nodes in pixels, and its edges by index of their nodes. */
export interface GraphInput {
  widths: Float32Array;
  heights: Float32Array;
  from: Int32Array;
  to: Int32Array;
  /** Width of the label of each edge, 0 for none. */
  labels?: Float32Array;
}

/** Places in pixels. */
export interface GraphLayout {
  /** Centers of nodes. */
  x: Float32Array;
  y: Float32Array;
  /** Points of edges, x and y in turn; those of edge i are from starts[i] to starts[i + 1]. */
  points: Float32Array;
  starts: Int32Array;
  /** Centers of the labels of edges, x and y in turn. */
  labels: Float32Array;
  width: number;
  height: number;
}

interface Reply {
  id: number;
  layout?: GraphLayout;
  error?: string;
}

let worker: Worker | null = null;
let last = 0;

/** Computes a layout. An abort ends the computation; the next layout starts a new worker. */
export function layoutGraph(input: GraphInput, signal: AbortSignal): Promise<GraphLayout> {
  const id = ++last;
  const w = (worker ??= new Worker(new URL('./graph-layout-worker.ts', import.meta.url), { type: 'module' }));
  return new Promise((resolve, reject) => {
    const end = (): void => {
      w.removeEventListener('message', answer);
      w.removeEventListener('error', fail);
      signal.removeEventListener('abort', abort);
    };
    const stop = (reason: Error): void => {
      end();
      w.terminate();
      if (worker === w) worker = null;
      reject(reason);
    };
    const answer = (event: MessageEvent<Reply>): void => {
      if (event.data.id !== id) return;
      end();
      if (event.data.layout) resolve(event.data.layout);
      else reject(new Error(event.data.error));
    };
    const fail = (event: ErrorEvent): void => stop(new Error(event.message || t('The worker that draws graphs cannot be started. Reload the page.')));
    const abort = (): void => stop(new DOMException('aborted', 'AbortError'));
    if (signal.aborted) return abort();
    w.addEventListener('message', answer);
    w.addEventListener('error', fail);
    signal.addEventListener('abort', abort);
    w.postMessage({ id, input });
  });
}

/** SVG path of a smooth line through the points of an edge, which is level at each of them. */
export function edgePath(layout: GraphLayout, edge: number): string {
  const [from, to] = [layout.starts[edge], layout.starts[edge + 1]];
  if (to - from < 4) return '';
  const { points } = layout;
  let path = `M${points[from].toFixed(1)} ${points[from + 1].toFixed(1)}`;
  for (let i = from + 2; i < to; i += 2) {
    const [x, y, before] = [points[i], points[i + 1], points[i - 1]];
    const middle = ((x + points[i - 2]) / 2).toFixed(1);
    path += `C${middle} ${before.toFixed(1)} ${middle} ${y.toFixed(1)} ${x.toFixed(1)} ${y.toFixed(1)}`;
  }
  return path;
}

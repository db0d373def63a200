import type { GraphInput } from './graph-layout';
import { runLayout } from './graph-layout-run';

self.onmessage = (event: MessageEvent<{ id: number; input: GraphInput }>): void => {
  const { id, input } = event.data;
  try {
    const layout = runLayout(input);
    self.postMessage({ id, layout }, { transfer: [layout.x.buffer, layout.y.buffer, layout.starts.buffer, layout.points.buffer, layout.labels.buffer] });
  } catch (e) {
    self.postMessage({ id, error: e instanceof Error ? e.message : String(e) });
  }
};

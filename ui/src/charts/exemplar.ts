import type { Heatmap } from '../api/types';
import { millis } from '../shell/format';
import type { Box } from '../shell/url';

/** An example of a cell. `span` is "" in a heatmap of traces. */
export interface Exemplar {
  trace: string;
  span: string;
  name: string;
  service: string;
  /** Nanoseconds. */
  duration: number;
}

/** The slowest example in a cell with these limits, or null if none is known. */
export function slowestExemplar(data: Heatmap, cell: Box): Exemplar | null {
  const e = data.exemplars;
  let best = -1;
  for (let i = 0; i < e.traceID.length; i++) {
    const at = millis(e.start[i]);
    if (at >= cell.t0 && at < cell.t1 && e.duration[i] >= cell.d0 && e.duration[i] < cell.d1 && (best < 0 || e.duration[i] > e.duration[best])) best = i;
  }
  return best < 0 ? null : { trace: e.traceID[best], span: data.of === 'traces' ? '' : e.spanID[best], name: e.name[best], service: e.service[best], duration: e.duration[best] };
}

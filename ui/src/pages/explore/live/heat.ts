// The heatmap of the live view: counts of the last minutes, which slide with the time.

import type { Heatmap, TraceSummary } from '../../../api/types';
import { millis, nanos } from '../../../shell/format';

/** Width of a column in milliseconds, and number of columns: five minutes. */
export const step = 2000;
const columns = 150;

/** Maximum number of traces that are remembered as examples, and to replace their counts when they come again. */
const maxKnown = 1000;
const bucketsPerOctave = 8;
const maxExemplars = 300;

interface Known {
  trace: TraceSummary;
  column: number;
  bucket: number;
  weight: number;
}

type Counts = Map<number, { count: number; errors: number }>; // by bucket

/** Counts by column, which is the start divided by the step, and bucket of duration. Memory is bounded by the number of columns. */
export class LiveHeat {
  private readonly cells = new Map<number, Counts>();
  private readonly known = new Map<string, Known>();
  /** Columns up to this one have the counts of the server. */
  private seeded = -Infinity;

  /** Parameters for the counts of the time before, which `seed` takes. */
  static window(now: number): { start: string; end: string; step: string } {
    const end = Math.floor(now / step) * step;
    return { start: nanos(end - (columns - 1) * step), end: nanos(end - 1), step: `${step / 1000}s` };
  }

  /** Takes the counts of the time before the connection. */
  seed(h: Heatmap): void {
    const first = Math.floor(millis(h.start) / step);
    const scale = h.share > 0 ? 1 / h.share : 1;
    this.seeded = first + h.columns - 1;
    this.cells.clear();
    this.known.clear();
    h.cells.column.forEach((c, i) => this.count(first + c, h.cells.bucket[i], h.cells.count[i] * scale, h.cells.errors[i] * scale));
  }

  /** Adds a trace that stands for `weight` traces. */
  add(t: TraceSummary, weight: number): void {
    const before = this.known.get(t.traceID);
    if (before) {
      this.known.delete(t.traceID);
      this.count(before.column, before.bucket, -before.weight, before.trace.errors > 0 ? -before.weight : 0);
    }
    const column = Math.floor(millis(t.start) / step);
    if (column <= this.seeded) return;
    const bucket = Math.floor(Math.log2(Math.max(1, t.duration)) * bucketsPerOctave);
    this.known.set(t.traceID, { trace: t, column, bucket, weight });
    if (this.known.size > maxKnown) this.known.delete(this.known.keys().next().value!);
    this.count(column, bucket, weight, t.errors > 0 ? weight : 0);
  }

  private count(column: number, bucket: number, n: number, errors: number): void {
    const counts = this.cells.get(column) ?? new Map<number, { count: number; errors: number }>();
    this.cells.set(column, counts);
    // Also without `at`, which removes what is too old.
    if (this.cells.size > 2 * columns) this.cells.delete(this.cells.keys().next().value!);
    const cell = counts.get(bucket) ?? { count: 0, errors: 0 };
    counts.set(bucket, { count: Math.max(0, cell.count + n), errors: Math.max(0, cell.errors + errors) });
  }

  /** The window that ends now, as an answer of the server would be. Forgets what is older. */
  at(now: number): Heatmap {
    const first = Math.floor(now / step) - columns + 1;
    for (const column of this.cells.keys()) if (column < first || column >= first + columns) this.cells.delete(column);
    const cells: Heatmap['cells'] = { column: [], bucket: [], count: [], errors: [] };
    let [traces, errors] = [0, 0];
    for (const [column, counts] of this.cells) {
      for (const [bucket, cell] of counts) {
        if (cell.count < 0.5) continue;
        cells.column.push(column - first);
        cells.bucket.push(bucket);
        cells.count.push(Math.round(cell.count));
        cells.errors.push(Math.round(cell.errors));
        traces += cell.count;
        errors += cell.errors;
      }
    }
    [traces, errors] = [Math.round(traces), Math.round(errors)];
    return {
      of: 'traces', start: nanos(first * step), step: step * 1e6, columns, bucketsPerOctave, spans: traces, errors, share: 1, scanned: 0,
      estimatedSpans: traces, estimatedErrors: errors, cells, exemplars: this.exemplars(first),
    };
  }

  private exemplars(first: number): Heatmap['exemplars'] {
    const e: Heatmap['exemplars'] = { traceID: [], spanID: [], start: [], duration: [], service: [], name: [], error: [] };
    for (const { trace: t, column } of [...this.known.values()].slice(-maxExemplars)) {
      if (column < first) continue;
      e.traceID.push(t.traceID);
      e.spanID.push('');
      e.start.push(t.start);
      e.duration.push(t.duration);
      e.service.push(t.rootService);
      e.name.push(t.rootName);
      e.error.push(t.errors > 0);
    }
    return e;
  }
}

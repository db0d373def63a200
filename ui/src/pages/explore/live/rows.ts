// The list of the live view: newest first, bounded, held while the user looks at it.

import type { TraceSummary } from '../../../api/types';
import { millis } from '../../../shell/format';

/** Maximum number of rows, and of traces that wait while the list is held. */
export const maxRows = 60;

/** Traces that are shown, and those that wait. */
export interface LiveRows {
  shown: TraceSummary[];
  waiting: TraceSummary[];
  /** Number of traces that came since the list was held, also those that are not kept. */
  held: number;
}

/** No traces. */
export const noRows: LiveRows = { shown: [], waiting: [], held: 0 };

/** Adds a trace; one that is listed already is replaced where it is. */
export function addRow(rows: LiveRows, t: TraceSummary, hold: boolean): LiveRows {
  if (!hold) return { ...rows, shown: placed(rows.shown, t) };
  const again = rows.waiting.some((w) => w.traceID === t.traceID) || rows.shown.some((s) => s.traceID === t.traceID);
  return { ...rows, waiting: placed(rows.waiting, t), held: rows.held + (again ? 0 : 1) };
}

/** Shows the traces that wait. */
export function releaseRows(rows: LiveRows): LiveRows {
  if (rows.waiting.length === 0) return rows;
  return { shown: [...rows.waiting].reverse().reduce(placed, rows.shown), waiting: [], held: 0 };
}

function placed(list: TraceSummary[], t: TraceSummary): TraceSummary[] {
  const at = list.findIndex((o) => o.traceID === t.traceID);
  if (at >= 0) return list.with(at, t);
  const older = list.findIndex((o) => millis(o.start) <= millis(t.start));
  return list.toSpliced(older < 0 ? list.length : older, 0, t).slice(0, maxRows);
}

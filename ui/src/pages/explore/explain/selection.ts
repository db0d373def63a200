// What is selected to be explained, as parameters, as a search and in words.

import type { Params } from '../../../api/client';
import { addCondition, setBounds } from '../../../query/edit';
import { durationText, round3 } from '../../../query/field';
import { withSet } from '../../../query/sets';
import { iso, nanos } from '../../../shell/format';
import type { Box, Range, View } from '../../../shell/url';
import type { Run } from '../run';

const slowShare = 0.05;

/** The box of a selection, if it is one. */
export function boxOfSelection(sel: View['sel']): Box | null {
  return typeof sel === 'string' ? null : sel;
}

/** Parameters of a request to explain the selection of the URL; null if nothing is selected. */
export function explainParams(run: Run, { sel, of, base }: View): Params | null {
  if (!sel) return null;
  const shared = { q: run.q, start: run.start, end: run.end, of, baseline: base };
  if (sel === 'errors') return { ...shared, sel_q: '{ error }' };
  if (sel === 'slowest') return { ...shared, sel_slowest: slowShare };
  const end = Math.min(sel.t1, run.to);
  return { ...shared, sel_start: nanos(Math.max(sel.t0, run.from)), sel_end: nanos(end), sel_min: sel.d0 + 'ns', sel_max: sel.d1 + 'ns' };
}

/** The selection as a search with further spans, and the time range of it. `least` is the duration that the slowest ones reach. */
export function selectedSearch(run: Run, { sel, of }: View, set: string, least = 0): { q: string; range?: Range } {
  if (sel === 'errors') return { q: withSet(addCondition(run.q, 'error', '=', 'true'), set) };
  if (!sel) return { q: withSet(run.q, set) };
  const field = of === 'traces' ? 'trace.duration' : 'duration';
  if (sel === 'slowest') return { q: withSet(addCondition(run.q, field, '>=', durationText(least)), set) };
  const q = setBounds(run.q, field, durationText(round3(sel.d0, Math.floor)), durationText(round3(sel.d1, Math.ceil)));
  return { q: withSet(q, set), range: { from: iso(Math.max(sel.t0, run.from)), to: iso(Math.min(sel.t1, run.to)) } };
}

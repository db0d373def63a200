// What is selected to be explained, as parameters, as a search and in words.

import type { Params } from '../../../api/client';
import type { Explanation } from '../../../api/explain';
import type { Heatmap } from '../../../api/types';
import { finest, gridOf, sumOf } from '../../../charts/heatmap-model';
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

/** Number of selected traces or spans, if it is known: of what Explain compares, otherwise as in the heatmap. */
export function selectedCount(sel: View['sel'], heat: Heatmap | undefined, explained: Explanation | undefined): number | undefined {
  if (explained || !sel || !heat) return explained?.selected.estimated;
  return sel === 'errors' ? heat.estimatedErrors : sel === 'slowest' ? undefined : Math.round(sumOf(gridOf(heat, finest), sel).count / heat.share);
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

/** What is selected: members of the view. */
type Selected = Pick<View, 'sel' | 'of'>;

/** The selection as a search. `least` is the duration that the slowest ones reach. `round` rounds the durations of a box. */
function searchOf(run: Run, { sel, of }: Selected, least: number, round = round3): string {
  if (!sel) return run.q;
  if (sel === 'errors') return addCondition(run.q, 'error', '=', 'true');
  const field = of === 'traces' ? 'trace.duration' : 'duration';
  if (sel === 'slowest') return addCondition(run.q, field, '>=', durationText(least));
  return setBounds(run.q, field, durationText(round(sel.d0, Math.floor)), durationText(round(sel.d1, Math.ceil)));
}

/** The time of the selection, within that of the run. */
function timeOf(run: Run, box: Box): [number, number] {
  return [Math.max(box.t0, run.from), Math.min(box.t1, run.to)];
}

/** The selection as a search with further spans, and the time range of it. `least` is the duration that the slowest ones reach. */
export function selectedSearch(run: Run, view: Selected, set: string, least = 0): { q: string; range?: Range } {
  const q = withSet(searchOf(run, view, least), set);
  if (!view.sel || typeof view.sel === 'string') return { q };
  const [from, to] = timeOf(run, view.sel);
  return { q, range: { from: iso(from), to: iso(to) } };
}

// By selection. The same object again, so that a return to the page finds its search.
const parts = new WeakMap<Run, Map<string, Run>>();

/** What is selected of a run, as a run. `least` is the duration that the slowest ones reach, if it is known. Null if nothing is selected, or if it is not known. */
export function selectedRun(run: Run, { sel, of }: Selected, least?: number): Run | null {
  if (!sel || (sel === 'slowest' && least === undefined)) return null;
  const key = JSON.stringify([sel, of, least]);
  const known = parts.get(run) ?? new Map<string, Run>();
  parts.set(run, known);
  const part = known.get(key) ?? partOf(run, sel, of, least);
  known.set(key, part);
  return part;
}

function partOf(run: Run, sel: NonNullable<View['sel']>, of: View['of'], least = 0): Run {
  // With exact durations, so that the traces are those that the heatmap counts.
  const part = { ...run, q: searchOf(run, { sel, of }, least, (ns) => ns) };
  if (typeof sel === 'string') return part;
  const [from, to] = timeOf(run, sel);
  return { ...part, from, to, start: nanos(from), end: nanos(to), until: of === 'traces' ? nanos(Math.min(run.to, to + sel.d1 / 1e6)) : undefined };
}

// What the keys and buttons of the trace page do.

import { navigate } from '../shell/url';
import { nextOf, spanID } from './model/span';
import { besideBreak, timeOf } from './model/time-scale';
import { fold } from './model/types';
import { fractionOf, leastZoom } from './timeline/axis';
import { around, forURL, limit, pan, zoomBy, type Zoom } from './timeline/zoom';
import type { TraceState } from './state';

/** Moves the cursor by rows, or to the first or last row. With an open panel, the panel follows. */
export function moveCursor(state: TraceState, by: number): void {
  const { row } = state.rows.value;
  if (row.length === 0) return;
  const at = state.rowIndex(state.active.value);
  const next = at < 0 ? (by < 0 ? row.length - 1 : 0) : Math.min(row.length - 1, Math.max(0, at + by));
  setCursor(state, row[next]);
}

/** Puts the cursor on a row: a span, or ~group. */
export function setCursor(state: TraceState, key: number): void {
  state.active.value = key;
  state.goal.value = { key, center: false };
  if (key >= 0 && state.selected.value >= 0) state.open(key, true);
}

/** Opens the detail panel of the row with the cursor; a row of a group unfolds. */
export function openActive(state: TraceState): void {
  const key = state.active.value;
  if (key === null) return;
  if (key >= 0) state.open(key);
  else toggle(state, key);
}

/** Closes what is open, innermost first: detail panel, part of the sentence, matches only, zoom, re-rooted span. */
export function back(state: TraceState): void {
  if (state.selected.value >= 0) navigate({ span: '' });
  else if (state.chosen.value.length > 0) state.chosen.value = [];
  else if (state.part.value >= 0) navigate({ part: '' }, { replace: true });
  else if (state.only.value) navigate({ only: false });
  else if (state.zoomed.value) navigate({ zoom: null });
  else if (state.root.value >= 0) navigate({ root: '', zoom: null });
}

/** Most rows of a pattern. */
const maxChosen = 3;

/** Chooses a span for a pattern, or no longer. Beyond the maximum, the one that was chosen first is left out. */
export function choose(state: TraceState, key: number | null): void {
  if (key === null || key < 0 || state.source.kind !== 'server') return;
  const chosen = state.chosen.value;
  state.chosen.value = chosen.includes(key) ? chosen.filter((s) => s !== key) : [...chosen, key].slice(-maxChosen);
}

/** Folds or unfolds a row. */
export function toggle(state: TraceState, key: number): void {
  const next = new Set(state.toggled.value);
  if (!next.delete(key)) next.add(key);
  state.toggled.value = next;
}

/** Right arrow: unfolds, then goes to the first child. Left arrow: folds, then goes to the parent row. */
export function arrow(state: TraceState, right: boolean): void {
  const key = state.active.value;
  const at = state.rowIndex(key);
  const { row, level, fold: folds } = state.rows.value;
  if (at < 0 || key === null) return;
  if (folds[at] === (right ? fold.folded : fold.open)) return toggle(state, key);
  if (right && folds[at] === fold.open) return setCursor(state, row[at + 1]);
  const above = right ? -1 : parentRow(level, at);
  if (above >= 0) setCursor(state, row[above]);
}

/** The row one level up, or -1. */
export function parentRow(level: Int32Array, row: number): number {
  let at = row - 1;
  while (at >= 0 && level[at] >= level[row]) at--;
  return at;
}

/** Goes to a span and shows it, also in an open panel. */
export function goTo(state: TraceState, span: number): void {
  if (span < 0) return;
  state.show(span);
  bringIntoZoom(state, span);
  if (state.selected.value >= 0) state.open(span, true);
}

/** Goes to the next span of a list after the cursor. */
export function goToNext(state: TraceState, list: Int32Array, step: 1 | -1 = 1): void {
  const { spans } = state.model.value;
  goTo(state, nextOf(list, activeSpan(state) ?? (step > 0 ? -1 : spans), step));
}

/** The span with the cursor, the first one of a group, or null. */
export function activeSpan(state: TraceState): number | null {
  const key = state.active.value;
  const { members, offset } = state.model.value.groups;
  return key === null || key >= 0 ? key : members[offset[~key]];
}

/** Goes to the parent of the row with the cursor. */
export function goToParent(state: TraceState): void {
  const span = activeSpan(state);
  if (span !== null) goTo(state, state.model.value.parent[span]);
}

/** Folds one level more (-1) or less (1). */
export function foldLevel(state: TraceState, by: 1 | -1): void {
  const deepest = state.model.value.facts.depth - 1;
  const level = state.fold.value < 0 ? deepest : state.fold.value;
  navigate({ fold: Math.min(deepest, Math.max(0, level + by)) }, { replace: true });
}

/** Sets the visible part of the time axis, as fractions of the scale. */
export function setZoom(state: TraceState, zoom: Zoom, replace = false): void {
  const next = inURL(state, zoom);
  if (next || state.zoomed.value) navigate({ zoom: next }, { replace });
}

/** Zooms by a factor around the middle, or around `at`. */
export function zoomAround(state: TraceState, factor: number, at?: number): void {
  const zoom = state.zoom.value;
  setZoom(state, zoomBy(zoom, factor, at ?? (zoom[0] + zoom[1]) / 2, leastZoom(state.scale.value)), true);
}

/** Moves the visible part by a share of its width. */
export function panBy(state: TraceState, share: number): void {
  setZoom(state, pan(state.zoom.value, share), true);
}

/** A part of the scale as it is in the URL: fractions of the time of the trace, null for all of it. */
function inURL(state: TraceState, zoom: Zoom): Zoom | null {
  const scale = state.scale.value;
  const fraction = (f: number): number => Math.min(1, timeOf(scale, f * scale.length) / Math.max(1, state.model.value.duration));
  const part = forURL(zoom);
  return part && [fraction(part[0]), fraction(part[1])];
}

function partOf(state: TraceState, span: number): Zoom {
  const { start, end } = state.model.value;
  return [fractionOf(state.scale.value, start[span]), fractionOf(state.scale.value, end[span])];
}

/** The part that shows a span with some space around it, but no break. */
function aroundSpan(state: TraceState, span: number): Zoom {
  const scale = state.scale.value;
  const [from, to] = around(...partOf(state, span), leastZoom(scale)).map((f, i) => besideBreak(scale, f * scale.length, i === 0) / scale.length);
  return limit(from, to, leastZoom(scale));
}

/** Zooms to a span; again: shows the whole trace. */
export function zoomTo(state: TraceState, span: number): void {
  if (span < 0) return;
  const next = aroundSpan(state, span);
  const now = state.zoom.value;
  const same = state.zoomed.value !== null && Math.abs(now[0] - next[0]) < 1e-6 && Math.abs(now[1] - next[1]) < 1e-6;
  setZoom(state, same ? [0, 1] : next);
}

/** Moves the visible part so that a span is in it. */
export function bringIntoZoom(state: TraceState, span: number): void {
  if (!state.zoomed.value) return;
  const zoom = state.zoom.value;
  const [start, end] = partOf(state, span);
  if (end > zoom[0] && start < zoom[1]) return;
  const width = zoom[1] - zoom[0];
  const from = Math.min(1 - width, Math.max(0, (start + end - width) / 2));
  setZoom(state, [from, from + width], true);
}

/** Shows a span as root, on its own time. */
export function setRoot(state: TraceState, span: number): void {
  navigate({ root: spanID(state.model.value, span), zoom: inURL(state, aroundSpan(state, span)) });
  state.active.value = span;
}

/** Leaves idle time out of the axes, or shows it. */
export function toggleBreaks(state: TraceState): void {
  if (state.canBreak.value) navigate({ idle: state.breaks.value ? 'full' : 'short' }, { replace: true });
}

/** Pins an attribute key to the rows, or removes it. */
export function togglePin(state: TraceState, key: string): void {
  const pins = state.pins.value;
  navigate({ pins: pins.includes(key) ? pins.filter((k) => k !== key) : [...pins, key] }, { replace: true });
}

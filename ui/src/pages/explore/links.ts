import type { TraceSummary } from '../../api/types';
import { link, linked, type View } from '../../shell/url';
import type { Run } from './run';

/** What the trace page highlights: the search, unless it selects all spans. */
export function findOf(q: string): string {
  return /^\s*(\{\s*\})?\s*$/.test(q) ? '' : q;
}

function change(t: TraceSummary, run: Run): Partial<View> {
  const find = findOf(run.q);
  return { span: find ? t.matched?.ids[0] ?? '' : '', find };
}

/** URL of a trace at its first matching span. */
export function traceLink(t: TraceSummary, run: Run): string {
  return link({ page: 'trace', id: t.traceID }, change(t, run));
}

/** The view behind `traceLink`. */
export function traceView(t: TraceSummary, run: Run): View {
  return linked({ page: 'trace', id: t.traceID }, change(t, run));
}

import type { TraceSummary } from '../../api/types';
import { link, type View } from '../../shell/url';
import type { Run } from './run';

/** What the trace page marks: the search, unless it selects all spans or is not complete. */
export function markedSearch(q: string): string {
  return selectsAll(q) || !/^[!(\s]*\{/.test(q) ? '' : q.trim();
}

function change(t: TraceSummary, run: Run): Partial<View> {
  return { span: selectsAll(run.q) ? '' : t.matched?.ids[0] ?? '', search: markedSearch(run.q) };
}

/** Whether a search selects all spans. */
export function selectsAll(q: string): boolean {
  return /^\s*(\{\s*\})?\s*$/.test(q);
}

/** URL of a trace at its first matching span. */
export function traceLink(t: TraceSummary, run: Run): string {
  return link({ page: 'trace', id: t.traceID }, change(t, run));
}

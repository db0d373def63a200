import type { TraceSummary } from '../../api/types';
import { link, type View } from '../../shell/url';
import type { Run } from './run';

/** What the trace page highlights: the search, unless it selects all spans. A text to find is a search only if it begins with a brace. */
export function findOf(q: string): string {
  const text = q.trim();
  return text.startsWith('{') && !/^\{\s*\}$/.test(text) ? text : '';
}

function change(t: TraceSummary, run: Run): Partial<View> {
  return { span: selectsAll(run.q) ? '' : t.matched?.ids[0] ?? '', find: findOf(run.q) };
}

/** Whether a search selects all spans. */
export function selectsAll(q: string): boolean {
  return /^\s*(\{\s*\})?\s*$/.test(q);
}

/** URL of a trace at its first matching span. */
export function traceLink(t: TraceSummary, run: Run): string {
  return link({ page: 'trace', id: t.traceID }, change(t, run));
}

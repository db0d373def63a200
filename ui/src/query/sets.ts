// Searches that combine several sets of spans.

import { withoutSelect } from './edit';
import { parseQuery } from './parse';

/** Selects only traces that also have a span of a further set, which is written in braces. */
export function withSet(text: string, set: string): string {
  const q = parseQuery(text);
  if (!q || !q.set || (q.set.type === 'spans' && q.set.conditions?.length === 0)) return set;
  const own = withoutSelect(text);
  return `${q.set.type === 'spans' || q.set.op !== '||' ? own : `(${own})`} && ${set}`;
}

/** Whether a search relates several sets of spans, other than as alternatives. */
export function hasStructure(text: string): boolean {
  const set = parseQuery(text)?.set;
  const related = (n: NonNullable<typeof set>): boolean => n.type !== 'spans' && (n.op !== '||' || related(n.left) || (!!n.right && related(n.right)));
  return !!set && related(set);
}

// Searches that combine several sets of spans.

import { hasStages, withoutSelect } from './edit';
import { parseQuery } from './parse';

/** Selects only traces that also have a span of a further set, which is written in braces. */
export function withSet(text: string, set: string): string {
  const q = parseQuery(text);
  if (!q) return hasStages(text) ? `(${text}) && ${set}` : set;
  if (!q.set || (q.set.type === 'spans' && q.set.conditions?.length === 0)) return set;
  const own = withoutSelect(text);
  return `${q.set.type === 'spans' || q.set.op !== '||' ? own : `(${own})`} && ${set}`;
}

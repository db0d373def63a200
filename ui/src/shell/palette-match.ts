/** Something to jump to. */
export interface Target {
  /** Kind, whose name is printed at the end of the row. */
  kind: 'Page' | 'Service' | 'Recent trace' | 'Trace' | 'Search' | 'Saved search';
  label: string;
  /** Secondary text. */
  detail?: string;
  href: string;
}

/** Score of a text for what the user typed: higher is better, 0 is no match. Matches are case-insensitive: prefix, start of a word, inside, letters in order. */
export function score(text: string, typed: string): number {
  const [t, q] = [text.toLowerCase(), typed.trim().toLowerCase()];
  if (!q) return 1;
  if (t === q) return 100;
  if (t.startsWith(q)) return 80;
  const at = t.indexOf(q);
  if (at > 0) return /[\p{L}\d]/u.test(t[at - 1]) ? 40 : 60;
  return inOrder(t, q) ? 10 : 0;
}

function inOrder(t: string, q: string): boolean {
  let at = -1;
  for (const c of q) {
    at = t.indexOf(c, at + 1);
    if (at < 0) return false;
  }
  return q.length > 1;
}

/** The best targets for what the user typed, at most `limit`, equal ones in their order. */
export function bestTargets(targets: Target[], typed: string, limit: number): Target[] {
  return targets
    .map((target, i) => ({ target, i, s: Math.max(score(target.label, typed), target.detail ? score(target.detail, typed) / 2 : 0) }))
    .filter((x) => x.s > 0)
    .sort((a, b) => b.s - a.s || a.i - b.i)
    .slice(0, limit)
    .map((x) => x.target);
}

import { useMemo, useState } from 'preact/hooks';
import { authorization, tenant } from '../../api/client';
import type { Nanos } from '../../api/types';
import { withoutSelect } from '../../query/edit';
import { parseQuery } from '../../query/parse';
import { nanos } from '../../shell/format';
import { resolveRange } from '../../shell/range';
import { view } from '../../shell/url';

/** A search at a fixed time range: all regions of the page show the same one. */
export interface Run {
  /** The search without `| select(...)`. */
  q: string;
  /** Fields that the search itself selects. */
  select: string[];
  /** Milliseconds since the epoch. */
  from: number;
  to: number;
  /** The same as parameters of requests. */
  start: Nanos;
  end: Nanos;
  /** Only traces that begin in the time range: their matching spans start until this time. */
  until?: Nanos;
}

interface Kept {
  key: string;
  run: Run;
}

// The last search, so that a return to the page shows the same state.
let kept: Kept | null = null;

/** The search of the URL. A relative range is fixed when the search or the range changes, and with `again`. */
export function useRun(): { run: Run; again: () => void } {
  const [attempt, setAttempt] = useState(0);
  const { q, range } = view.value;
  const key = JSON.stringify([q, range, authorization.value, tenant.value]);
  const run = useMemo(() => {
    if (kept?.key === key && attempt === 0) return kept.run;
    const { from, to } = resolveRange(range, Date.now());
    kept = { key, run: { q: withoutSelect(q), select: parseQuery(q)?.select ?? [], from, to, start: nanos(from), end: nanos(to) } };
    return kept.run;
  }, [key, attempt]);
  return { run, again: () => setAttempt((n) => n + 1) };
}

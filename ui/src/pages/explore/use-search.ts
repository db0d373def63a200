import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ApiError, endedEarly, stream } from '../../api/client';
import type { SearchLine, SearchOutcome, TraceSummary } from '../../api/types';
import { withSelect } from '../../query/edit';
import { millis } from '../../shell/format';
import { selectsAll } from './links';
import type { Run } from './run';

/** What a search has found so far. */
export interface SearchState {
  /** The run that the traces are of: until the first answer, that of the search before. */
  run: Run | null;
  traces: TraceSummary[];
  /** Spans examined. */
  scanned: number;
  outcome: SearchOutcome | null;
  error: ApiError | null;
  reading: boolean;
}

const initial: SearchState = { run: null, traces: [], scanned: 0, outcome: null, error: null, reading: true };

// The last complete search, so that a return to the page shows the same traces at the same place.
let kept: { run: Run; query: string; state: SearchState } | null = null;

/** Default number of traces of a page of results. */
export const pageSize = 50;

/** Streams traces, newest first; none for the run null. `more` reads the next page. What the search before has found stays until the first answer. */
export function useSearch(run: Run | null, fields: string[], limit: number): SearchState & { more: () => void } {
  const select = fields.join('\n');
  const query = `${limit}\n${select}`;
  const restored = kept?.run === run && kept.query === query ? kept.state : null;
  const [state, setState] = useState<SearchState>(restored ?? initial);
  const abort = useRef<AbortController | null>(null);
  const start = (before: TraceSummary[], cursor: string): void => {
    if (!run) return setState({ ...initial, reading: false });
    const own = new AbortController();
    abort.current?.abort();
    abort.current = own;
    setState((s) => ({ ...s, error: null, reading: true }));
    const sink = collector(run, before, cursor ? {} : { outcome: null }, (change) => { if (!own.signal.aborted) setState((s) => ({ ...s, ...change })); });
    const params = { q: withSelect(run.q, fields), start: run.start, end: run.until ?? run.end, limit: limit || pageSize, cursor, matched: selectsAll(run.q) ? undefined : 1 };
    stream<SearchLine>('search', params, sink.line, own.signal).then(sink.end, (e: unknown) => sink.fail(asError(e)));
  };
  useLayoutEffect(() => { // the server searches while the page is drawn
    if (restored) setState(restored);
    else start([], '');
    return () => abort.current?.abort(); // also a later page
  }, [run, query]);
  useEffect(() => { if (run && !state.reading && state.outcome && state.run === run) kept = { run, query, state }; }, [state]);
  const next = (state.run === run && state.outcome?.next) || '';
  // All traces of a page can begin after the selected box: the next page has those in it.
  const skipped = next && !state.reading && !state.error && state.traces.length === 0 && state.outcome!.traces > 0;
  useEffect(() => { if (skipped) start([], next); }, [state]);
  return { ...state, reading: state.reading || !!skipped, more: () => { if (next && !state.reading) start(state.traces, next); } };
}

function asError(e: unknown): ApiError {
  return e instanceof ApiError ? e : new ApiError(0, endedEarly);
}

function beginsIn(run: Run, trace: TraceSummary): boolean {
  const at = millis(trace.start);
  return at >= run.from && at < run.to;
}

/** Collects lines, and shows them at most once for each frame, with what else changes then. */
function collector(run: Run, before: TraceSummary[], change: Partial<SearchState>, show: (change: Partial<SearchState>) => void) {
  const traces = [...before];
  let frame = 0;
  const flush = (): void => {
    cancelAnimationFrame(frame);
    frame = 0;
    show({ ...change, run, traces: [...traces] });
  };
  return {
    line: (l: SearchLine): void => {
      if (l.progress) change.scanned = l.progress.scanned;
      if (l.trace && (!run.until || beginsIn(run, l.trace))) traces.push(l.trace);
      if (l.error) change.error = new ApiError(l.error.code, l.error.msg);
      if (l.outcome) change = { ...change, outcome: l.outcome, scanned: l.outcome.scanned };
      // Progress without traces leaves the traces of the search before.
      if (traces.length > before.length || l.outcome || l.error) frame ||= requestAnimationFrame(flush);
      else show({ scanned: change.scanned });
    },
    end: (): void => {
      change.reading = false;
      // A proxy can cut an answer so that it seems to be at its end.
      if (!change.outcome && !change.error) change.error = new ApiError(0, endedEarly);
      flush();
    },
    fail: (error: ApiError): void => {
      change = { ...change, error, reading: false };
      // Without a new trace, those of the search before stay, with its outcome.
      if (traces.length > before.length) flush();
      else show({ error, reading: false });
    },
  };
}

import { useEffect, useRef, useState } from 'preact/hooks';
import { config } from '../shell/config';
import { contextAt, type Context } from './complete';
import { localSuggestions, remoteSuggestions, type Period, type Suggestions } from './suggest';

/** Completions of the text at the caret. */
export interface Completion extends Suggestions {
  context: Context;
}

const debounce = 120; // ms

/** Finds completions while `open`. Requests wait for a pause and are aborted when the text changes. */
export function useSuggestions(text: string, caret: number, open: boolean, period: () => Period): Completion | null {
  const [found, setFound] = useState<Completion | null>(null);
  const latest = useRef(period);
  latest.current = period;
  useEffect(() => {
    if (!open) return setFound(null);
    const context = contextAt(text, caret);
    const local = localSuggestions(context);
    if (local) return setFound({ ...local, context });
    const abort = new AbortController();
    const timer = setTimeout(() => {
      remoteSuggestions(context, latest.current(), config.value?.language, abort.signal).then(
        (s) => { if (!abort.signal.aborted) setFound({ ...s, context }); },
        () => { if (!abort.signal.aborted) setFound(null); }, // completion is a help: without it, the user can still write
      );
    }, debounce);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text, caret, open]);
  return open ? found : null;
}

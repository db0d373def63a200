import { useEffect, useState } from 'preact/hooks';

/** Milliseconds that a page must have left before its next frame. A page that scrolls has less. */
const free = 12;

/** Milliseconds after which a page that never rests does not wait any more. */
const patience = 10_000;

/**
 * Calls `run` when the page is at rest: not between two frames of a scroll. Returns what cancels the call.
 * A call that replaces a canceled one passes the time of that, `since`, so that it does not wait longer.
 */
export function whenIdle(run: () => void, since = performance.now()): () => void {
  if (!window.requestIdleCallback) { // Safari
    const timer = setTimeout(run);
    return () => clearTimeout(timer);
  }
  let id = 0;
  const look = (rest: IdleDeadline): void => { if (rest.didTimeout || rest.timeRemaining() >= free) run(); else ask(); };
  const ask = (): void => { id = requestIdleCallback(look, { timeout: Math.max(1, since + patience - performance.now()) }); }; // 0: no timeout
  ask();
  return () => cancelIdleCallback(id);
}

/** Whether the page has been at rest since the component was drawn: then it can draw what is not visible yet. */
export function useRested(): boolean {
  const [rested, setRested] = useState(false);
  useEffect(() => whenIdle(() => setRested(true)), []);
  return rested;
}

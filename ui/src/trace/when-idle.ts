/** Milliseconds that a page must have left before its next frame. A page that scrolls has less. */
const free = 12;

/** Idle moments after which a page that never rests does not wait any more: about ten seconds. */
const patience = 600;

/** Calls `run` when the page is at rest: not between two frames of a scroll. Returns what cancels the call. */
export function whenIdle(run: () => void): () => void {
  if (!window.requestIdleCallback) { // Safari
    const timer = setTimeout(run);
    return () => clearTimeout(timer);
  }
  let [id, tries] = [0, 0];
  const look = (rest: IdleDeadline): void => { if (rest.timeRemaining() < free && ++tries < patience) ask(); else run(); };
  const ask = (): void => { id = requestIdleCallback(look); };
  ask();
  return () => cancelIdleCallback(id);
}

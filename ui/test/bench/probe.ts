// What is measured inside a page. The functions run in the browser: they use nothing outside of themselves.

/** Measures since the start of the navigation, in milliseconds, on `window.bench`. */
export interface Probe {
  /** Time at which `watch` first matched an element and the frame with it was drawn. */
  shown: Promise<number>;
  /** Time at which that frame began. */
  frame: number;
  /** Milliseconds of each call `find` of the worker. */
  finds: number[];
}

declare global {
  interface Window {
    bench: Probe;
  }
}

/** Notes when an element that matches `selector` is first drawn, and how long the worker searches. Runs before the page. */
export function watch(selector: string): void {
  const finds: number[] = [];
  const shown = new Promise<number>((resolve) => {
    const look = (): void => {
      if (!document.querySelector(selector)) return;
      observer.disconnect();
      // A message that is sent before a frame arrives after it.
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => resolve(performance.now());
      requestAnimationFrame(() => {
        window.bench.frame = performance.now();
        port2.postMessage(0);
      });
    };
    const observer = new MutationObserver(look);
    observer.observe(document, { childList: true, subtree: true });
  });
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (this: Worker, message: { id?: number; call?: string }, ...rest: unknown[]): void {
    const at = performance.now();
    const answered = (e: MessageEvent<{ id?: number }>): void => {
      if (e.data.id !== message.id) return;
      this.removeEventListener('message', answered);
      finds.push(performance.now() - at);
    };
    if (message.call === 'find') this.addEventListener('message', answered);
    post.call(this, message, ...(rest as []));
  };
  window.bench = { shown, frame: 0, finds };
}

/** Scrolls 600 px in each of `frames` frames and returns their lengths in milliseconds. */
export function scrollFrames({ selector, frames }: { selector: string; frames: number }): Promise<number[]> {
  const element = document.querySelector(selector)!;
  return new Promise((resolve) => {
    const lengths: number[] = [];
    let last = 0;
    const step = (now: number): void => {
      if (last) lengths.push(now - last);
      last = now;
      if (lengths.length >= frames) return resolve(lengths);
      element.scrollTop += 600;
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
}

/** Clicks an element and returns the milliseconds until an element that matches `until` is drawn. */
export function clickUntil({ click, until }: { click: string; until: string }): Promise<number> {
  return new Promise((resolve) => {
    const at = performance.now();
    const observer = new MutationObserver(() => {
      if (!document.querySelector(until)) return;
      observer.disconnect();
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => resolve(performance.now() - at);
      requestAnimationFrame(() => port2.postMessage(0));
    });
    observer.observe(document, { childList: true, subtree: true });
    const element = document.querySelector(click)!;
    const { left, top, width, height } = element.getBoundingClientRect();
    // In the middle: a row has a check box at its left edge.
    element.dispatchEvent(new MouseEvent('click', { bubbles: true, clientX: left + width / 2, clientY: top + height / 2 }));
  });
}

/** Unfolds the rows down to a level, as the URL does, and returns the milliseconds until other rows are drawn. */
export function foldTo(level: number): Promise<number> {
  return new Promise((resolve) => {
    const at = performance.now();
    const observer = new MutationObserver(() => {
      observer.disconnect();
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => resolve(performance.now() - at);
      requestAnimationFrame(() => port2.postMessage(0));
    });
    observer.observe(document.getElementById('spans')!, { attributeFilter: ['aria-rowcount'] });
    history.replaceState(null, '', `${location.pathname}?fold=${level}`); // the base of relative URLs is another page
    dispatchEvent(new PopStateEvent('popstate'));
  });
}

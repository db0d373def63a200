import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { whenIdle } from './when-idle';

describe('whenIdle', () => {
  let now: number;
  let look: IdleRequestCallback | null;
  let timeout: number | undefined;
  let runs: number;
  const run = (): void => { runs++; };
  const between = (left: number): void => look!({ didTimeout: false, timeRemaining: () => left });

  beforeEach(() => {
    [now, look, timeout, runs] = [5000, null, undefined, 0];
    const request = (callback: IdleRequestCallback, options?: IdleRequestOptions): number => {
      [look, timeout] = [callback, options?.timeout];
      return 1;
    };
    vi.spyOn(performance, 'now').mockImplementation(() => now);
    vi.stubGlobal('window', { requestIdleCallback: request });
    vi.stubGlobal('requestIdleCallback', request);
    vi.stubGlobal('cancelIdleCallback', () => { look = null; });
  });

  afterEach(() => {
    vi.restoreAllMocks();
    vi.unstubAllGlobals();
  });

  it('waits until there is time between two frames', () => {
    whenIdle(run);
    for (let i = 0; i < 1000; i++) between(6);
    expect(runs).toBe(0);
    between(14);
    expect(runs).toBe(1);
  });

  it('waits for ten seconds, also if there is no time between frames at all', () => {
    whenIdle(run);
    expect(timeout).toBe(10_000);
    now += 4000;
    between(6);
    expect(timeout).toBe(6000);
    look!({ didTimeout: true, timeRemaining: () => 0 });
    expect(runs).toBe(1);
  });

  it('does not begin to wait again if the call is replaced', () => {
    const since = now;
    const cancel = whenIdle(run, since);
    now += 9000;
    cancel();
    expect(look).toBeNull();
    whenIdle(run, since);
    expect(timeout).toBe(1000);
    now += 2000;
    between(6);
    expect(timeout).toBe(1); // 0 would be without a limit
  });
});

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { request } from './client';

beforeEach(() => {
  vi.useFakeTimers();
  // A server that never answers.
  vi.stubGlobal('fetch', (_url: string, { signal }: { signal: AbortSignal }) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))));
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test.each([[undefined, 120], [600_000, 600]])('a request with the timeout %s ends after %d s', async (timeout, seconds) => {
  const failed = vi.fn();
  request('/api/ui/v1/demo', {}, { method: 'POST', timeout }).catch(failed);
  await vi.advanceTimersByTimeAsync(seconds * 1000 - 1);
  expect(failed).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(failed.mock.calls[0]?.[0].message).toBe(`The server has not responded within ${seconds} s.`);
});

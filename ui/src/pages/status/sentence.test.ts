import { describe, expect, it } from 'vitest';
import { statusSentence } from './sentence';

const base = { receives: true, received: 1000, refused: 0, refusedRequests: 0, dropped: 0 };

describe('statusSentence', () => {
  it.each([
    [base, 18412.3, 'Healthy: 18,412 spans/s received, none refused or dropped', 'ok'],
    [base, 0, 'Healthy and idle: no spans at the moment', 'ok'],
    [base, null, 'Healthy: nothing refused, nothing dropped', 'ok'],
    [{ ...base, received: 0 }, 0, 'No span received since the start', null],
    [{ ...base, refused: 214, dropped: 1 }, 5, '1 span dropped, 214 spans refused, 1,000 spans accepted', 'warn'],
    [{ ...base, refusedRequests: 2, received: 1 }, 5, '2 requests refused, 1 span accepted', 'warn'],
    [{ ...base, receives: false }, null, 'This process answers queries and receives no spans', null],
  ] as const)('%j at %s', (d, rate, text, mark) => {
    expect(statusSentence(d, rate)).toEqual({ text, mark });
  });
});

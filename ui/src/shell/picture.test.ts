import { expect, test } from 'vitest';
import { wrapped } from './picture';

test('a sentence is broken into lines that fit', () => {
  const c = { measureText: (text: string) => ({ width: text.length }) as TextMetrics };
  expect(wrapped(c, 'payment fails 31.9 % of requests', 16)).toEqual(['payment fails', '31.9 % of', 'requests']);
  expect(wrapped(c, 'northpay-timeouts-everywhere now', 10)).toEqual(['northpay-timeouts-everywhere', 'now']);
});

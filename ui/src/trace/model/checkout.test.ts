import { expect, it } from 'vitest';
import { buildModel } from './build';
import { outlineOf, span, type Sample } from './samples';
import { sentenceText } from './sentence';

type Rest = Omit<Sample, 'name' | 'at' | 'takes'>;

/** A span in milliseconds. */
const ms = (service: string, name: string, at: number, takes: number, children: Sample[] = [], rest: Rest = {}): Sample => span(name, at * 1e6, takes * 1e6, { service, kind: 2, children, ...rest });
const call = (service: string, peer: string, name: string, at: number, takes: number): Sample => ms(service, name, at, takes, [], { kind: 3, peer });

/** A call of a provider that times out twice and is repeated, while checkout waits. */
const charge = (at: number, takes: number, wait: number): Sample => ms('payment', 'POST /v1/charges', at, takes, [
  ms('payment', 'connect', at + 0.4, 4.6), ms('payment', 'TLS handshake', at + 5.3, 8.8), ms('payment', 'await response', at + 14, wait),
], { flags: takes > 500 ? 1 : 0 });

it('a slow checkout in one sentence', () => {
  const trace = ms('frontend', 'POST /checkout', 0, 1842, [
    ms('gateway', 'POST /api/checkout', 5, 1833, [
      ms('gateway', 'authenticate', 6, 3.4, [call('gateway', 'redis', 'GET session', 6.9, 1.4)]),
      ms('checkout', 'PlaceOrder', 14, 1820, [
        ms('cart', 'GetCart', 17, 420, [
          ms('cart', 'acquire lock', 18, 409, [call('cart', 'redis', 'BLPOP lock:cart', 20, 405)]),
          call('cart', 'redis', 'HGETALL cart', 428, 3.1),
        ]),
        ms('pricing', 'Quote', 440, 38), ms('inventory', 'Reserve', 480, 33), ms('shipping', 'Quote', 481, 26),
        ms('payment', 'Charge', 516, 1289, [
          ms('fraud', 'Score', 518, 27), charge(547, 520, 504), charge(1122, 510, 495.6), charge(1712, 84, 69.4), call('payment', 'postgres', 'INSERT charges', 1798, 5.4),
        ], { flags: 1 }),
        call('checkout', 'kafka', 'publish orders', 1814, 5.2),
      ]),
    ]),
    ms('notification', 'process orders', 1820.5, 19, [], { kind: 5 }),
  ]);
  const m = buildModel(outlineOf(trace), [], true);
  expect(sentenceText(m).replaceAll('\u202f', ' ')).toBe('1.84 s: 61 % payment, 22 % waiting on redis, 7 % gaps, 10 % in 9 others');
  const [payment, , gaps] = m.sentence;
  const names = (spans: Int32Array): string[] => [...new Set([...spans].map((s) => m.names[m.name[s]]))];
  expect(names(payment.spans)).toEqual(['Charge', 'POST /v1/charges', 'connect', 'TLS handshake', 'await response']);
  expect(names(gaps.spans)).toEqual(['Charge']);
});

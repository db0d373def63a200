import { describe, expect, it } from 'vitest';
import type { Balance, Details, ReceiverState } from '../../api/deployment';
import { parts, verdictText } from './equation';
import { answerOf, processWith } from './fixture.test-data';
import { addSamples, keyOf, rates, totalRate } from './rates';
import { statusSentence } from './sentence';

const receiver = (change: Partial<ReceiverState> = {}): ReceiverState => ({ component: 'otlp', transport: 'http', addresses: [':4318'], received: 1000, refused: 0, refusedRequests: 0, ...change });
const intake = (r: Partial<ReceiverState> = {}, dropped = 0): Partial<Details> => ({ intake: { since: '2026-03-04T12:00:00Z', dropped, receivers: [receiver(r)] } });
const report = (change: Partial<Details['report']>): Partial<Details> => ({ report: { status: 'degraded', pipelines: [], beside: [], configuration: { since: '', reloads: 0 }, ...change } });

describe('statusSentence', () => {
  it.each([
    [intake(), 18412.3, 'Healthy: 18,412 spans/s received, none refused or lost', 'ok'],
    [intake(), 0, 'Healthy and idle: no spans at the moment', 'ok'],
    [intake(), null, 'Healthy: nothing refused, nothing lost', 'ok'],
    [intake({ received: 0 }), 0, 'No span received since the start', null],
    [intake({ refused: 214 }, 1), 5, '1 span lost, 214 spans refused; 1,000 spans received', 'warn'],
    [intake({ refusedRequests: 2 }), 5, '2 requests refused; 1,000 spans received', 'warn'],
    [{}, null, 'This process answers queries and receives no spans', null],
    [report({ beside: [{ component: 'disk', kind: 'exporter', status: 'degraded', reason: 'disk is full', since: '' }] }), 5, 'Degraded: disk: disk is full', 'warn'],
    [report({ configuration: { since: '', reloads: 1, problem: 'line 3: unknown key' } }), 5, 'Degraded: configuration: line 3: unknown key', 'warn'],
  ] as const)('%j at %s', (d, rate, text, mark) => {
    expect(statusSentence(answerOf(processWith(d as Partial<Details>)), rate)).toEqual({ text, mark });
  });

  it('names processes that do not answer first', () => {
    const all = answerOf(processWith(intake(), 'http://a'), { address: 'http://b', error: 'refused', data: null }, processWith());
    expect(statusSentence(all, 5).text).toBe('1 of 3 processes does not respond');
  });

  it('says nothing about what is hidden', () => {
    const all = { ...answerOf(processWith(intake({ refused: 5 }))), hidden: true };
    expect(statusSentence(all, 5).text).toBe('All components work; counters across tenants are not shown to tenants');
  });
});

describe('rates', () => {
  const at = (now: string, received: number) => answerOf(processWith({ ...intake({ received }), now }));
  it('are differences of counters, and begin again after a restart', () => {
    let samples = addSamples({}, at('2026-03-04T12:00:00Z', 100));
    expect(totalRate(samples, at('2026-03-04T12:00:00Z', 100))).toBeNull();
    samples = addSamples(samples, at('2026-03-04T12:00:05Z', 600));
    samples = addSamples(samples, at('2026-03-04T12:00:05Z', 600)); // the same answer
    expect(rates(samples[keyOf('', 'otlp', 'http')])).toEqual([100]);
    expect(totalRate(samples, at('2026-03-04T12:00:05Z', 600))).toBe(100);
    expect(rates(addSamples(samples, at('2026-03-04T12:00:10Z', 3))[keyOf('')])).toEqual([]);
  });
});

describe('the equation', () => {
  const balance: Balance = { pipelines: ['traces'], ways: 1, received: 100, stored: 60, sent: 0, refused: 10, dropped: 20, lost: 5, queued: 0, held: 10, difference: 0, verdict: 'balanced' };
  it('lists parts whose sum is what was received', () => {
    for (const b of [balance, { ...balance, received: 107, difference: 7, verdict: 'in_progress' as const }, { ...balance, sent: 60, stored: 0 }]) {
      expect(parts(b).reduce((sum, p) => sum + p.spans, 0)).toBe(b.received);
    }
    expect(parts(balance).map((p) => `${p.spans} ${p.label}${p.bad ? '!' : ''}`)).toEqual(['60 stored', '10 refused!', '15 dropped on purpose', '5 lost!', '0 in queues', '10 held']);
  });
  it.each(['balanced', 'in_progress', 'twice', 'more', 'unknown', 'unbalanced'] as const)('explains %s', (verdict) => {
    expect(verdictText({ ...balance, verdict, difference: -3 }).text).toMatch(/\.$/);
  });

  it('says log records of pipelines of logs', () => {
    const text = (...pipelines: string[]) => verdictText({ ...balance, pipelines, verdict: 'balanced' }).text;
    expect(text('logs', 'logs/internal')).toBe('Balances: each log record has exactly one outcome.');
    expect(text('traces/logs')).toBe('Balances: each span has exactly one outcome.');
  });
});

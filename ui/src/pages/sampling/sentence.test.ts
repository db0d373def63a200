import { describe, expect, it } from 'vitest';
import type { MissingTrace, Stage } from '../../api/deployment';
import { causeText, changeText } from './causes';
import { leadOf, verdictText } from './sentence';

const missing = (change: Partial<MissingTrace>, ...stages: Stage[]): MissingTrace => ({
  service: 'shop', operation: '', trace: '0af7651916cd43dd8448eb211c80319c', tenant: '', stored: { trace: 'missing', spans: 0, services: [], service: 'known', similar: [], known: 3 },
  verdict: 'keeps', deciding: stages.length > 0 ? { process: 0, stage: 0 } : null, peers: 0, hidden: false,
  processes: [{ address: '', data: { strategies: [], stages } }], causes: [], changes: [], ...change,
});
const client: Stage = { kind: 'client', component: 'sampling', method: 'sdk', verdict: 'drops', probability: 0.125, needs: 0.193 };
const sampler: Stage = { kind: 'processor', component: 'probabilistic_sampler', method: 'consistent', verdict: 'drops', probability: 0.5, needs: 0.75 };
const tail: Stage = { kind: 'processor', component: 'tail_sampling', method: 'policies', verdict: 'depends', wait: 5e9 };
const space = '\u202f';

describe('leadOf', () => {
  it.each([
    [missing({ verdict: 'drops', operation: 'GET /' }, client), `Most likely not sampled: shop GET / is kept at 12.5${space}%, this trace needs 19.3${space}%`, 'error'],
    [missing({ verdict: 'drops' }, sampler), `Dropped by probabilistic_sampler: it keeps 50.0${space}% of all traces, this one needs 75.0${space}%`, 'error'],
    [missing({ verdict: 'depends' }, tail), 'Possibly dropped by tail_sampling: what it keeps depends on the spans of the trace', 'partial'],
    [missing({ verdict: 'depends', trace: '' }, { ...client, verdict: 'depends', needs: undefined }), `The strategy of shop keeps 12.5${space}% of the traces that start there`, 'partial'],
    [missing({}), 'Sampling does not drop this trace', 'ok'],
    [missing({ verdict: 'stored', stored: { trace: 'found', spans: 3, services: ['shop'], service: 'known', similar: [], known: 3 } }), 'Stored: the trace has 3 spans', 'ok'],
    [missing({ verdict: 'stored', causes: [{ code: 'other_service', process: -1 }], stored: { trace: 'found', spans: 1, services: ['web'], service: 'known', similar: [], known: 3 } }), 'Stored with 1 span, but none from shop', 'warn'],
    [missing({ verdict: 'depends', stored: { trace: 'missing', spans: 0, services: [], service: 'unknown', similar: ['Shop'], known: 3 } }, tail), 'No span of shop is stored', 'warn'],
    [missing({ verdict: 'depends', stored: { trace: 'unreadable', spans: 0, services: [], service: 'unreadable', similar: [], known: 3 } }, tail), 'Possibly stored: part of the store cannot be read', 'partial'],
    [missing({ causes: [{ code: 'no_spans', process: -1 }] }), 'No span has arrived here yet', 'error'],
  ] as const)('%#', (m, text, mark) => {
    expect(leadOf(m)).toMatchObject({ text, mark });
  });

  it('explains the number of a trace', () => {
    expect(leadOf(missing({ verdict: 'drops' }, sampler)).sub).toContain('the number 0.250');
  });
});

describe('texts', () => {
  const codes = ['other_service', 'no_spans', 'unknown', 'no_answer', 'refused', 'lost', 'held', 'queued', 'expired', 'tenant'];
  it.each(codes)('names the cause %s', (code) => {
    const text = causeText({ code, process: 0, component: 'otlp', spans: 2, requests: 1, duration: 5e9 }, missing({}));
    expect(text.title).not.toBe(code);
    expect(text.title + text.hint).not.toMatch(/[{}]|undefined/);
  });
  it.each(['strategy', 'target', 'percent', 'priority', 'policy', 'filter', 'flag'])('names the change %s', (code) => {
    expect(changeText({ code, process: 0, component: 'x', key: 'y', place: 'z', from: 0.1, to: 0.2 }, missing({}))).not.toMatch(/[{}]|undefined/);
  });
  it('says what a stage does', () => {
    expect([client, tail, { ...sampler, needs: undefined, verdict: 'depends' as const }].map(verdictText)).toEqual([`12.5${space}%, dropped`, `after 5.00${space}s`, `50.0${space}%`]);
  });
});

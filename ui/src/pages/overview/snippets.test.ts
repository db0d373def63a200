import { describe, expect, it } from 'vitest';
import type { Ingest } from '../../api/types';
import { onlyLocal, portOf, snippetsOf, snippetTabs, targetOf, testSpan } from './snippets';

const receiver = (name: string, protocol: string, endpoint: string): Ingest['receivers'][number] => ({ name, protocol, endpoint, received: 0, refused: 0, refusedRequests: 0 });
const ingest = { receives: true, receivers: [receiver('otlp', 'grpc', 'localhost:14317'), receiver('otlp', 'http', '127.0.0.1:14318'), receiver('thriftudp', 'compact', '127.0.0.1:6831')] };

describe('snippets', () => {
  it('finds ports', () => {
    expect([':4318', '[::]:4318', 'localhost:4318, [::1]:4318', ':6831/udp', 'unix', ''].map(portOf)).toEqual([4318, 4318, 4318, 6831, 0, 0]);
  });
  it('uses the real ports, and the standard ones if another process receives', () => {
    expect(targetOf(ingest, 'h')).toEqual({ host: 'h', otlpHTTP: 14318, otlpGRPC: 14317, zipkin: 0, agent: 6831 });
    expect(targetOf({ receives: false, receivers: [] }, 'h').otlpHTTP).toBe(4318);
    expect([onlyLocal(ingest), onlyLocal({ receivers: [receiver('otlp', 'http', ':4318')] }), onlyLocal(null)]).toEqual([true, false, false]);
  });
  it('makes a test span that is valid JSON', () => {
    const s = testSpan(1773326520250, Uint8Array.from({ length: 24 }, (_, i) => i + 1));
    expect(s).toEqual({ trace: '0102030405060708090a0b0c0d0e0f10', span: '1112131415161718', start: '1773326520000000000', end: '1773326520250000000' });
    const body = /-d '([^']+)'/.exec(snippetsOf('curl', targetOf(ingest, 'h'), s)[0].text)![1];
    expect(JSON.parse(body).resourceSpans[0].scopeSpans[0].spans[0]).toMatchObject({ traceId: s.trace, spanId: s.span, startTimeUnixNano: s.start });
    const z = /-d '([^']+)'/.exec(snippetsOf('zipkin', { ...targetOf(ingest, 'h'), zipkin: 9411 }, s)[0].text)![1];
    expect(JSON.parse(z)[0]).toMatchObject({ timestamp: 1773326520000000, duration: 250000 });
  });
  it('names the tenant', () => {
    const t = { ...targetOf(ingest, 'h'), zipkin: 9411, tenant: { header: 'x-tenant', name: "o'b" } };
    const text = snippetTabs.flatMap((tab) => snippetsOf(tab.id, t, testSpan(1e12, new Uint8Array(24)))).map((s) => s.text).join('\n');
    expect(text).toContain("export OTEL_EXPORTER_OTLP_HEADERS=x-tenant=o'b");
    expect(text.match(/-H 'x-tenant: o'\\''b'/g)).toHaveLength(3);
    expect(text).toContain('      x-tenant: "o\'b"');
    expect(text).toContain("--tenant 'o'\\''b'");
  });
  it('has a snippet in each tab whose receiver listens', () => {
    const counts = (t: ReturnType<typeof targetOf>): number[] => snippetTabs.map((tab) => snippetsOf(tab.id, t, testSpan(1e12, new Uint8Array(24))).length);
    expect(counts(targetOf(null, 'h'))).toEqual([2, 1, 1, 1, 1, 1]);
    expect(counts(targetOf(ingest, 'h'))).toEqual([2, 1, 1, 0, 1, 1]);
  });
});

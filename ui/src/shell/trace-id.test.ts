import { describe, expect, it } from 'vitest';
import { parseTraceRef } from './trace-id';

const id = '5b8efff798038103d269b633813fc60c';
const span = 'eee19b7ec3c1b174';

describe('parseTraceRef', () => {
  it.each([
    ['1', '1'], ['8D41F0C2', '8d41f0c2'], [` ${id}\n`, id], [`"${id}"`, id], [`0x${id}`, id], [`traceID=${id}`, id], [`trace_id: ${id},`, id],
    ['5b8efff7-9803-8103-d269-b633813fc60c', id], [`Root=1-${id.slice(0, 8)}-${id.slice(8)};Sampled=1`, id],
    [`https://jaeger.example/ui/trace/${id}`, id], [`/trace/${id}`, id], ['http://localhost:16686/trace/ab12?uiFind=GET', 'ab12'], [`http://zipkin/zipkin/traces/${span}`, span],
    [`http://host/trace/${id}...${span}`, id], [`https://x/api/traces/${id}?raw=true`, id], [`https://x/view?traceId=${id}&a=b`, id],
    [`https://g/explore?left=${encodeURIComponent(JSON.stringify({ queries: [{ query: id, queryType: 'traceql' }] }))}`, id],
    [`https://g/explore?panes=${encodeURIComponent(JSON.stringify({ a1: { datasource: 'tempo-1', queries: [{ query: id }] } }))}`, id],
  ])('finds the trace in %s', (text, trace) => {
    expect(parseTraceRef(text)).toEqual({ trace, span: '' });
  });

  it.each([
    [`00-${id}-${span}-01`], [`traceparent: 00-${id}-${span}-01`], [`b3: ${id}-${span}-1`], [`${id}-${span}`], [`uber-trace-id: ${id}:${span}:0:1`],
    [`http://host/trace/${id}?span=${span}`], [`http://host/trace/${id}?uiFind=${span}`], [`https://g/a?traceId=${id}&spanId=${span}`],
  ])('finds trace and span in %s', (text) => {
    expect(parseTraceRef(text)).toEqual({ trace: id, span });
  });

  it.each([[''], ['checkout'], ['0'], ['0'.repeat(32)], [id + '0'], ['http://host/search?service=checkout'], ['http://'], ['/search'], ['00-xyz'], ['%E0%A4%A']])('finds nothing in %j', (text) => {
    expect(parseTraceRef(text)).toBeNull();
  });
});

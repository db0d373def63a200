// Spans of tests, sent as OTLP JSON.

import { randomBytes } from 'node:crypto';
import type { Program } from './program.ts';

type Value = string | number | boolean;

/** A span. Times are milliseconds: the start since the epoch. */
export interface TestSpan {
  traceID: string;
  spanID: string;
  parentID?: string;
  service: string;
  name: string;
  start: number;
  duration: number;
  kind?: 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  error?: string | true;
  attributes?: Record<string, Value>;
  resource?: Record<string, Value>;
  events?: { name: string; time: number; attributes?: Record<string, Value> }[];
  links?: { traceID: string; spanID: string; attributes?: Record<string, Value> }[];
}

const kinds = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 };

/** A random id of a trace. */
export const traceID = (): string => randomBytes(16).toString('hex');

/** A random id of a span. */
export const spanID = (): string => randomBytes(8).toString('hex');

/** Sends spans to the receiver otlp. They can be found when the promise is fulfilled. */
export async function sendSpans(program: Program, spans: TestSpan[], headers: Record<string, string> = {}): Promise<void> {
  const url = (await program.address('otlp', 'protocols.http')) + '/v1/traces';
  const body = JSON.stringify({ resourceSpans: spans.map(resourceSpans) });
  const response = await fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } });
  const answer = await response.text();
  if (!response.ok || answer.includes('rejectedSpans')) throw new Error(`${response.status} ${answer}`);
}

function resourceSpans(s: TestSpan): object {
  return {
    resource: { attributes: attributes({ 'service.name': s.service, ...s.resource }) },
    scopeSpans: [{
      spans: [{
        traceId: s.traceID, spanId: s.spanID, parentSpanId: s.parentID ?? '', name: s.name, kind: kinds[s.kind ?? 'internal'],
        startTimeUnixNano: nanos(s.start), endTimeUnixNano: nanos(s.start + s.duration), attributes: attributes(s.attributes),
        status: s.error ? { code: 2, message: s.error === true ? '' : s.error } : {},
        events: (s.events ?? []).map((e) => ({ name: e.name, timeUnixNano: nanos(e.time), attributes: attributes(e.attributes) })),
        links: (s.links ?? []).map((l) => ({ traceId: l.traceID, spanId: l.spanID, attributes: attributes(l.attributes) })),
      }],
    }],
  };
}

function attributes(values: Record<string, Value> = {}): object[] {
  return Object.entries(values).map(([key, v]) => ({ key, value: value(v) }));
}

function value(v: Value): object {
  if (typeof v === 'string') return { stringValue: v };
  if (typeof v === 'boolean') return { boolValue: v };
  return Number.isInteger(v) ? { intValue: String(v) } : { doubleValue: v };
}

function nanos(milliseconds: number): string {
  return String(BigInt(Math.round(milliseconds * 1000)) * 1000n);
}

// OTLP in JSON: documents of exporters and collectors, and the answers of Tempo and of Jaeger's v3 API.

import type { Attribute } from '../../api/types';
import { t } from '../../shell/text';
import { emptyName, emptyService, id, isObject, nanos, newSpan, noService, objects, text, type FileSpan, type Json } from './span';

const kinds = ['unspecified', 'internal', 'server', 'client', 'producer', 'consumer'];
const statuses = ['unset', 'ok', 'error'];

/** The resource spans of a document, or null if it is not OTLP. Logs and metrics have none. */
export function resourceSpans(doc: Json): Json[] | null {
  for (const holder of [doc, doc.result, doc.trace, doc.data]) {
    if (!isObject(holder)) continue;
    const list = holder.resourceSpans ?? holder.resource_spans ?? holder.batches;
    if (Array.isArray(list)) return objects(list);
    if (holder.resourceLogs || holder.resourceMetrics) return [];
  }
  return null;
}

/** Reads resource spans. */
export function parseOTLP(list: Json[], take: (span: FileSpan) => void, where: string): void {
  for (const rs of list) {
    const resource = attributes(isObject(rs.resource) ? rs.resource.attributes : []);
    const service = serviceOf(resource);
    const scopes = objects(rs.scopeSpans ?? rs.scope_spans ?? rs.instrumentationLibrarySpans);
    for (const ss of scopes) {
      const scope = scopeOf(isObject(ss.scope) ? ss.scope : isObject(ss.instrumentationLibrary) ? ss.instrumentationLibrary : {});
      for (const s of objects(ss.spans)) take(spanOf(s, service, resource, scope, where));
    }
  }
}

function serviceOf(resource: Attribute[]): string {
  const name = resource.find((a) => a.key === 'service.name');
  return name ? name.value || emptyService : noService;
}

function scopeOf(s: Json): FileSpan['scope'] {
  return { name: text(s.name), version: text(s.version), attributes: attributes(s.attributes) };
}

function spanOf(s: Json, service: string, resource: Attribute[], scope: FileSpan['scope'], where: string): FileSpan {
  const span = newSpan(id(s.traceId ?? s.trace_id, 32, t('{where}: trace ID', { where })), id(s.spanId ?? s.span_id, 16, t('{where}: span ID', { where })));
  span.parentSpanID = id(s.parentSpanId ?? s.parent_span_id, 16, t('{where}: parent span ID', { where }));
  span.traceState = text(s.traceState);
  span.service = service;
  span.name = text(s.name) || emptyName;
  span.kind = named(s.kind, kinds, 'SPAN_KIND_');
  span.start = nanos(s.startTimeUnixNano ?? s.start_time_unix_nano);
  span.duration = Math.max(1, Number(BigInt(nanos(s.endTimeUnixNano ?? s.end_time_unix_nano)) - BigInt(span.start)));
  const status = isObject(s.status) ? s.status : {};
  span.status = named(status.code, statuses, 'STATUS_CODE_');
  span.statusMessage = text(status.message);
  span.attributes = attributes(s.attributes);
  span.resource = resource;
  span.scope = scope;
  span.events = objects(s.events).map((e) => ({ name: text(e.name), time: nanos(e.timeUnixNano ?? e.time_unix_nano), attributes: attributes(e.attributes) }));
  span.links = objects(s.links).map((l) => ({
    traceID: id(l.traceId ?? l.trace_id, 32, t('{where}: link', { where })), spanID: id(l.spanId ?? l.span_id, 16, t('{where}: link', { where })), traceState: text(l.traceState), attributes: attributes(l.attributes),
  }));
  return span;
}

/** Name of an enumeration value, which is a number or a name with a prefix. */
function named(v: unknown, names: string[], prefix: string): string {
  const name = typeof v === 'string' ? v.replace(prefix, '').toLowerCase() : '';
  return names.includes(name) ? name : names[Number(v ?? 0)] ?? names[0];
}

/** Reads a list of keys and values. */
export function attributes(list: unknown): Attribute[] {
  return objects(list).map((kv) => ({ key: text(kv.key), ...value(kv.value) }));
}

function value(v: unknown): Omit<Attribute, 'key'> {
  if (!isObject(v)) return { type: 'empty', value: '' };
  if ('stringValue' in v) return { type: 'string', value: text(v.stringValue) };
  if ('intValue' in v) return { type: 'int', value: text(v.intValue) };
  if ('doubleValue' in v) return { type: 'double', value: text(v.doubleValue) };
  if ('boolValue' in v) return { type: 'bool', value: text(v.boolValue) };
  if ('bytesValue' in v) return { type: 'bytes', value: text(v.bytesValue) };
  if ('arrayValue' in v) return { type: 'array', value: JSON.stringify(plain(v)) };
  if ('kvlistValue' in v) return { type: 'kvlist', value: JSON.stringify(plain(v)) };
  return { type: 'empty', value: '' };
}

/** A value as JSON has it. */
function plain(v: unknown): unknown {
  if (!isObject(v)) return null;
  if (isObject(v.arrayValue)) return Array.isArray(v.arrayValue.values) ? v.arrayValue.values.map(plain) : [];
  if (isObject(v.kvlistValue)) return Object.fromEntries(objects(v.kvlistValue.values).map((kv) => [text(kv.key), plain(kv.value)]));
  return v.stringValue ?? v.intValue ?? v.doubleValue ?? v.boolValue ?? v.bytesValue ?? null;
}

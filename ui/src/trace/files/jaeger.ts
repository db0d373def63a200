// Jaeger's JSON: answers of /api/traces, downloads of its UI, and lists of such traces or spans.

import type { Attribute } from '../../api/types';
import { t } from '../../shell/text';
import { emptyName, FileError, fromMicros, id, isObject, newSpan, noService, objects, plainAttribute, take as takeTag, text, type FileSpan, type Json } from './span';

/** The traces of a document, or null if it is not Jaeger's JSON. */
export function jaegerTraces(doc: Json): Json[] | null {
  if (Array.isArray(doc.data) && doc.data.every((item) => isObject(item) && Array.isArray(item.spans))) return objects(doc.data);
  if (isObject(doc.data) && Array.isArray(doc.data.spans)) return [doc.data];
  if (Array.isArray(doc.spans)) return [doc];
  if ('spanID' in doc && 'operationName' in doc) return [{ spans: [doc] }];
  return null;
}

/** Reads a trace. */
export function parseJaeger(trace: Json, take: (span: FileSpan) => void, where: string): void {
  const processes = new Map<string, Process>();
  if (isObject(trace.processes)) for (const [key, p] of Object.entries(trace.processes)) processes.set(key, processOf(p));
  for (const s of objects(trace.spans)) take(spanOf(s, trace, processes, where));
}

interface Process {
  service: string;
  tags: Attribute[];
}

function processOf(p: unknown): Process {
  if (!isObject(p)) return { service: noService, tags: [] };
  const service = text(p.serviceName) || noService;
  return { service, tags: [{ key: 'service.name', type: 'string', value: service }, ...tags(p.tags)] };
}

function spanOf(s: Json, trace: Json, processes: Map<string, Process>, where: string): FileSpan {
  const span = newSpan(id(s.traceID ?? trace.traceID, 32, t('{where}: trace ID', { where })), id(s.spanID, 16, t('{where}: span ID', { where })));
  if (!span.traceID) throw new FileError(t('{where}: a span has no trace ID.', { where }));
  const process = isObject(s.process) ? processOf(s.process) : processes.get(text(s.processID)) ?? processOf(null);
  span.service = process.service;
  span.resource = process.tags;
  span.name = text(s.operationName) || emptyName;
  span.start = fromMicros(s.startTime);
  span.duration = Math.max(1, Math.round(Number(s.duration ?? 0) * 1000)) || 1;
  span.attributes = tags(s.tags);
  span.events = objects(s.logs).map(eventOf);
  span.warnings = Array.isArray(s.warnings) ? s.warnings.map(text) : [];
  resolveReferences(span, s, where);
  promote(span);
  return span;
}

function eventOf(log: Json): FileSpan['events'][number] {
  const attributes = tags(log.fields);
  return { name: takeTag(attributes, 'event'), time: fromMicros(log.timestamp), attributes };
}

/** The parent is the first CHILD_OF reference to the same trace, or else the first FOLLOWS_FROM. Others are links. */
function resolveReferences(span: FileSpan, s: Json, where: string): void {
  const refs = objects(s.references).map((r) => ({ type: text(r.refType), traceID: id(r.traceID, 32, t('{where}: reference', { where })), spanID: id(r.spanID, 16, t('{where}: reference', { where })) }));
  const own = refs.filter((r) => r.traceID === span.traceID);
  const parent = own.find((r) => r.type === 'CHILD_OF') ?? own.find((r) => r.type === 'FOLLOWS_FROM');
  span.parentSpanID = parent?.spanID ?? id(s.parentSpanID, 16, t('{where}: parent', { where }));
  for (const r of refs) {
    if (r.type === 'CHILD_OF' && r === parent) continue;
    const value = r.type === 'CHILD_OF' ? 'child_of' : 'follows_from';
    span.links.push({ traceID: r.traceID, spanID: r.spanID, traceState: '', attributes: [{ key: 'opentracing.ref_type', type: 'string', value }] });
  }
}

/** Moves tags to the fields that stand for them. */
function promote(span: FileSpan): void {
  const a = span.attributes;
  span.kind = takeTag(a, 'span.kind').toLowerCase() || 'unspecified';
  span.traceState = takeTag(a, 'w3c.tracestate');
  span.scope = { name: takeTag(a, 'otel.scope.name') || takeTag(a, 'otel.library.name'), version: takeTag(a, 'otel.scope.version') || takeTag(a, 'otel.library.version'), attributes: [] };
  const code = takeTag(a, 'otel.status_code').toLowerCase();
  const failed = a.findIndex((item) => item.key === 'error' && item.value === 'true');
  if (failed >= 0) a.splice(failed, 1);
  if (failed >= 0 || code === 'error') span.status = 'error';
  else if (code === 'ok') span.status = 'ok';
  span.statusMessage = takeTag(a, 'otel.status_description');
  const at = a.findIndex((item) => item.key === 'internal.span.format');
  if (at >= 0) a.splice(at, 1);
}

const types: Record<string, Attribute['type']> = { string: 'string', bool: 'bool', int64: 'int', float64: 'double', binary: 'bytes' };

function tags(list: unknown): Attribute[] {
  return objects(list).map((item) => {
    const a = plainAttribute(text(item.key), item.value);
    return { ...a, type: types[text(item.type)] ?? a.type };
  });
}

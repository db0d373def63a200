// Zipkin's JSON, v1 and v2: a list of spans, or a list of traces.

import { t } from '../../shell/text';
import { emptyName, fromMicros, id, isObject, newSpan, noService, objects, plainAttribute, text, type FileSpan, type Json } from './span';

/** Whether an object is a span of Zipkin. */
export function isZipkin(s: Json): boolean {
  return 'traceId' in s && 'id' in s && !('startTimeUnixNano' in s);
}

/** Reads a span. A v1 span with both sides of a call becomes two spans with one id. */
export function parseZipkin(s: Json, take: (span: FileSpan) => void, where: string): void {
  const v1 = Array.isArray(s.binaryAnnotations) || objects(s.annotations).some((a) => 'endpoint' in a);
  if (v1) parseV1(s, take, where);
  else take(parseV2(s, where));
}

const kinds = new Set(['client', 'server', 'producer', 'consumer']);

function common(s: Json, where: string): FileSpan {
  const span = newSpan(id(s.traceId, 32, t('{where}: trace ID', { where })), id(s.id, 16, t('{where}: span ID', { where })));
  const parent = id(s.parentId, 16, t('{where}: parent ID', { where }));
  span.parentSpanID = parent === span.spanID ? '' : parent;
  span.name = text(s.name) || emptyName;
  span.start = fromMicros(s.timestamp);
  span.duration = Math.max(1, Math.round(Number(s.duration ?? 0) * 1000)) || 1;
  return span;
}

function parseV2(s: Json, where: string): FileSpan {
  const span = common(s, where);
  const kind = text(s.kind).toLowerCase();
  span.kind = kinds.has(kind) ? kind : 'unspecified';
  setService(span, s.localEndpoint);
  if (isObject(s.tags)) for (const [key, value] of Object.entries(s.tags)) addTag(span, key, text(value));
  addEndpoint(span, 'net.host', s.localEndpoint);
  addPeer(span, s.remoteEndpoint);
  span.events = objects(s.annotations).map((a) => ({ name: text(a.value), time: fromMicros(a.timestamp), attributes: [] }));
  return span;
}

function setService(span: FileSpan, endpoint: unknown): void {
  span.service = (isObject(endpoint) && text(endpoint.serviceName)) || noService;
  span.resource = [{ key: 'service.name', type: 'string', value: span.service }];
}

/** A tag `error` means that the span failed; its value is the reason. */
function addTag(span: FileSpan, key: string, value: string): void {
  if (key === 'error') span.status = 'error';
  if (key === 'otel.status_description') span.statusMessage = value;
  else if (key === 'otel.status_code') span.status = value.toLowerCase() === 'error' || span.status === 'error' ? 'error' : value.toLowerCase();
  else if (key !== 'error' || value !== 'true') span.attributes.push(plainAttribute(key, value));
}

function addEndpoint(span: FileSpan, prefix: string, endpoint: unknown): void {
  if (!isObject(endpoint)) return;
  const ip = text(endpoint.ipv6) || text(endpoint.ipv4);
  if (ip) span.attributes.push(plainAttribute(prefix + '.ip', ip));
  if (Number(endpoint.port) > 0) span.attributes.push(plainAttribute(prefix + '.port', Number(endpoint.port)));
}

function addPeer(span: FileSpan, endpoint: unknown): void {
  if (!isObject(endpoint)) return;
  if (text(endpoint.serviceName)) span.attributes.push(plainAttribute('peer.service', text(endpoint.serviceName)));
  addEndpoint(span, 'net.peer', endpoint);
}

/** Core annotations of v1: which side they are of, and whether they begin or end it. */
const core: Record<string, { kind: string; begins: boolean }> = {
  cs: { kind: 'client', begins: true }, cr: { kind: 'client', begins: false }, sr: { kind: 'server', begins: true }, ss: { kind: 'server', begins: false },
  ms: { kind: 'producer', begins: true }, mr: { kind: 'consumer', begins: true },
};

function parseV1(s: Json, take: (span: FileSpan) => void, where: string): void {
  const annotations = objects(s.annotations);
  const kindsOf = [...new Set(annotations.flatMap((a) => core[text(a.value)]?.kind ?? []))];
  const sides = (kindsOf.length ? kindsOf : ['']).map((kind) => side(s, annotations, kind, where));
  for (const span of sides) take(span);
}

/** One side of a v1 span; kind "" is a span within a service. */
function side(s: Json, annotations: Json[], kind: string, where: string): FileSpan {
  const span = common(s, where);
  span.kind = kind || 'unspecified';
  const own = annotations.filter((a) => core[text(a.value)]?.kind === kind);
  const binary = objects(s.binaryAnnotations);
  const local = binary.find((b) => text(b.key) === 'lc') ?? own[0] ?? annotations[0] ?? binary[0];
  setService(span, own[0]?.endpoint ?? local?.endpoint);
  setTimes(span, own, s);
  for (const b of binary) addBinary(span, b);
  span.events = annotations.filter((a) => !core[text(a.value)] && serviceIs(a.endpoint, span)).map((a) => ({ name: text(a.value), time: fromMicros(a.timestamp), attributes: [] }));
  return span;
}

function serviceIs(endpoint: unknown, span: FileSpan): boolean {
  return !isObject(endpoint) || !text(endpoint.serviceName) || text(endpoint.serviceName) === span.service;
}

/** Times of a side are those of its annotations; the times of the span are those of the client. */
function setTimes(span: FileSpan, own: Json[], s: Json): void {
  const begin = own.find((a) => core[text(a.value)].begins)?.timestamp;
  const end = own.find((a) => !core[text(a.value)].begins)?.timestamp;
  if (begin !== undefined && (span.kind !== 'client' || s.timestamp === undefined)) span.start = fromMicros(begin);
  if (begin !== undefined && end !== undefined && (span.kind !== 'client' || s.duration === undefined)) span.duration = Math.max(1, Math.round((Number(end) - Number(begin)) * 1000));
}

/** Binary annotations are tags; those with the keys of an address name the other side. */
function addBinary(span: FileSpan, b: Json): void {
  const key = text(b.key);
  const endpoint = isObject(b.endpoint) ? b.endpoint : {};
  if (key === 'lc') return;
  if (key === 'sa' || key === 'ca' || key === 'ma') {
    if ((key === 'ca') === (span.kind === 'server')) addPeer(span, endpoint);
    return;
  }
  if (serviceIs(endpoint, span)) addTag(span, key, text(b.value));
}

// Links to other systems: templates of the configuration, filled in with what a span or a search has.

import type { LinkTemplate, SpanDetail } from '../api/types';

/** What fills the placeholders. Times are nanoseconds since the Unix epoch. */
export interface LinkSubject {
  start: bigint;
  end: bigint;
  /** Of a search: its text in TraceQL. Of others: what `query` of the template gives. */
  query?: string;
  /** Of a span: */
  traceId?: string;
  spanId?: string;
  service?: string;
  operation?: string;
  attributes?: SpanDetail['attributes'];
  resource?: SpanDetail['resource'];
}

/** A link that can be shown. */
export interface FilledLink {
  name: string;
  href: string;
}

/** The subject of links of a span; `duration` is in nanoseconds. */
export function subjectOf(traceId: string, span: SpanDetail): LinkSubject {
  const start = BigInt(span.start || '0');
  return { traceId, spanId: span.spanID, service: span.service, operation: span.name, start, end: start + BigInt(Math.round(span.duration)), attributes: span.attributes, resource: span.resource };
}

/** The links of one place for which the subject has all values. `key` is the attribute of `on: attribute`. */
export function linksFor(templates: readonly LinkTemplate[], on: LinkTemplate['on'], subject: LinkSubject, key = ''): FilledLink[] {
  return templates.filter((l) => l.on === on && l.key === key).flatMap((l) => {
    const href = fillLink(l, subject);
    return href ? [{ name: l.name, href }] : [];
  });
}

/** The address of a template with the values of a subject, or "" if one is missing. Only http, https and mailto are followed. */
export function fillLink(template: LinkTemplate, subject: LinkSubject): string {
  if (template.requires.some((name) => valueOf(name, subject) === '')) return '';
  const margin = BigInt(template.margin);
  const wider = { ...subject, start: subject.start - margin, end: subject.end + margin };
  if (template.query) wider.query = fill(template.query, wider, (value) => value);
  const href = fill(template.url, wider, encode);
  return isAllowed(href) ? href : '';
}

/** A text with the values of its placeholders, or "" if one is missing. Other text in braces stays; the server has the same expression. */
function fill(text: string, subject: LinkSubject, encoded: (value: string) => string): string {
  let complete = true;
  const filled = text.replace(/\{([A-Za-z]+(?:[.:][^{}]*)?)\}/g, (_, placeholder: string) => {
    const [, name, quoting] = /^(.*?)(?::(json|rison|jsurl))?$/.exec(placeholder)!;
    const value = valueOf(name, subject);
    // Such a value would lead to another folder of the server.
    if (value === '' || value === '.' || value === '..') complete = false;
    return quoting === 'jsurl' ? jsurl(value) : encoded(quoting === 'json' ? JSON.stringify(value) : quoting ? rison(value) : value);
  });
  return complete ? filled : '';
}

/** A string of Rison, a format of objects in addresses. */
function rison(value: string): string {
  return `'${value.replace(/[!']/g, '!$&')}'`;
}

/** A string of https://github.com/Sage/jsurl without its quote: safe in an address, where it must not be encoded again. */
function jsurl(value: string): string {
  return value.replace(/[^\w.-]/g, (c) => {
    const code = c.charCodeAt(0);
    return code < 256 ? '*' + code.toString(16).padStart(2, '0') : '**' + code.toString(16).padStart(4, '0');
  });
}

function isAllowed(href: string): boolean {
  try {
    return ['http:', 'https:', 'mailto:'].includes(new URL(href).protocol);
  } catch {
    return false;
  }
}

/** Leaves no character that has a meaning in an address, in HTML or in text around it. */
function encode(value: string): string {
  const wellFormed = value.replace(/[\ud800-\udfff]/gu, '\ufffd');
  return encodeURIComponent(wellFormed).replace(/[!'()*]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase());
}

const perUnit: Record<string, bigint> = { s: 1_000_000_000n, ms: 1_000_000n, us: 1000n, ns: 1n };

/** Value of a placeholder, or "" if there is none. */
function valueOf(name: string, s: LinkSubject): string {
  if (name.startsWith('attribute.')) return attribute(s.attributes, name.slice('attribute.'.length));
  if (name.startsWith('resource.')) return attribute(s.resource, name.slice('resource.'.length));
  const [base, unit = 'ms'] = name.split(':');
  switch (base) {
    case 'query': return s.query ?? '';
    case 'traceId': return s.traceId ?? '';
    case 'spanId': return s.spanId ?? '';
    case 'service': return s.service ?? '';
    case 'operation': return s.operation ?? '';
    case 'start': return time(s.start, unit);
    case 'end': return time(s.end, unit);
    case 'duration': return String((s.end - s.start) / (perUnit[unit] ?? 1n));
  }
  return '';
}

function attribute(list: SpanDetail['attributes'] | undefined, key: string): string {
  return list?.find((a) => a.key === key)?.value ?? '';
}

function time(nanos: bigint, unit: string): string {
  return unit === 'iso' ? new Date(Number(nanos / 1_000_000n)).toISOString() : String(nanos / (perUnit[unit] ?? 1n));
}

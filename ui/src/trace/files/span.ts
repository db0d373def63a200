// Spans of files, in the form in which the server describes spans, and helpers of the parsers.

import type { Attribute, Nanos, SpanDetail } from '../../api/types';
import { t } from '../../shell/text';

/** A span of a file. */
export interface FileSpan extends SpanDetail {
  /** 32 hexadecimal digits. */
  traceID: string;
}

/** An object of a parsed file: anything can be in it. */
export type Json = Record<string, unknown>;

/** Names that the server gives to what has none. */
export const noService = 'missing-service-name';
export const emptyService = 'empty-service-name';
export const emptyName = 'empty-span-name';

/** What is wrong with a file, as a sentence that names the place. */
export class FileError extends Error {
  constructor(text: string) {
    super(text);
    this.name = 'FileError';
  }
}

/** A span without content. */
export function newSpan(traceID: string, spanID: string): FileSpan {
  return {
    traceID, spanID, parentSpanID: '', traceState: '', service: '', name: '', kind: 'unspecified', status: 'unset', statusMessage: '', start: '0', duration: 0,
    attributes: [], resource: [], scope: { name: '', version: '', attributes: [] }, events: [], links: [], linkedFrom: [], warnings: [],
  };
}

/** Whether a value is an object, and not a list. */
export function isObject(v: unknown): v is Json {
  return typeof v === 'object' && v !== null && !Array.isArray(v);
}

/** The objects of a list; nothing if it is not a list. */
export function objects(v: unknown): Json[] {
  return Array.isArray(v) ? v.filter(isObject) : [];
}

/** Text of a value that should be a string. */
export function text(v: unknown): string {
  return typeof v === 'string' ? v : v === undefined || v === null ? '' : String(v);
}

/** An id with all its digits, or "" for none. Throws a FileError if it is not hexadecimal. `where` names the place. */
export function id(v: unknown, digits: 16 | 32, where: string): string {
  const s = text(v).toLowerCase();
  if (s === '' || /^0+$/.test(s)) return '';
  if (/^[0-9a-f]+$/.test(s) && s.length <= 32) return s.slice(-digits).padStart(digits, '0');
  const hex = base64Hex(text(v));
  if (hex.length === digits) return hex;
  throw new FileError(t('{where}: “{text}” is not a hexadecimal ID of at most {digits} digits.', { where, text: s.slice(0, 40), digits }));
}

/** Some servers write ids in base64. */
function base64Hex(s: string): string {
  if (!/^[A-Za-z0-9+/]{11,22}={1,2}$/.test(s)) return '';
  return Array.from(atob(s), (c) => c.charCodeAt(0).toString(16).padStart(2, '0')).join('');
}

/** Nanoseconds of microseconds, which can have decimals. */
export function fromMicros(v: unknown): Nanos {
  const micros = Number(v);
  if (!(micros > 0) || micros > 9e15) return '0';
  const whole = Math.floor(micros);
  return String(BigInt(whole) * 1000n + BigInt(Math.round((micros - whole) * 1000)));
}

/** Time of decimal nanoseconds, as text or number; "0" if there is none. */
export function nanos(v: unknown): Nanos {
  const s = typeof v === 'number' ? (Number.isSafeInteger(v) ? String(v) : String(BigInt(Math.max(0, Math.round(v))))) : text(v);
  return /^\d{1,19}$/.test(s) ? s : '0';
}

/** An attribute of a string, number or boolean of JSON. */
export function plainAttribute(key: string, v: unknown): Attribute {
  switch (typeof v) {
    case 'string': return { key, type: 'string', value: v };
    case 'boolean': return { key, type: 'bool', value: String(v) };
    case 'number': return { key, type: Number.isInteger(v) ? 'int' : 'double', value: String(v) };
  }
  if (v === null || v === undefined) return { key, type: 'empty', value: '' };
  return { key, type: Array.isArray(v) ? 'array' : 'kvlist', value: JSON.stringify(v) };
}

/** Removes the first attribute with a key and returns its value, or "". */
export function take(attributes: Attribute[], key: string): string {
  const at = attributes.findIndex((a) => a.key === key);
  return at < 0 ? '' : attributes.splice(at, 1)[0].value;
}

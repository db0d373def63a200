// From the outline, as the server sends it, to typed arrays.

import type { Nanos, Outline } from '../../api/types';
import { flag } from './types';

/** Columns of a trace: what the outline says, without what follows from it. */
export interface Columns {
  begin: Nanos;
  duration: number;
  parent: Int32Array;
  start: Float64Array;
  end: Float64Array;
  service: Int32Array;
  name: Int32Array;
  kind: Uint8Array;
  flags: Uint8Array;
  ids: Uint8Array;
  peer: Int32Array;
  links: Int32Array;
  eventFirst: Int32Array;
  eventTime: Float64Array;
  eventName: Int32Array;
  eventException: Uint8Array;
  warningSpan: Int32Array;
  warningText: string[];
}

/** Decodes an outline. `skew` applies the clock-skew correction. Throws an Error if the columns do not fit together. */
export function decodeColumns(o: Outline, skew: boolean): Columns {
  const n = o.spans;
  const c = o.columns;
  checkLengths(o);
  const start = new Float64Array(n);
  for (let i = 0, at = 0; i < n; i++) start[i] = at += c.start[i];
  const flags = digits(c.flags);
  if (skew) shift(o, start, flags);
  const { offset, duration, end } = extent(start, c.duration);
  const warnings = decodeWarnings(o, flags);
  return {
    begin: offset ? String(BigInt(o.start) + BigInt(offset)) : o.start, duration, start, end, flags,
    parent: parents(c.parent), service: indexes(c.service, o.services.length, 'service'), name: indexes(c.name, o.names.length, 'name'),
    kind: digits(c.kind), ids: idsOf(c.id, 8 * n), peer: sparse(n, o.peers?.span, o.peers?.service, -1),
    links: sparse(n, o.links?.span, o.links?.count, 0), ...decodeEvents(o), ...warnings,
  };
}

function checkLengths(o: Outline): void {
  const { parent, start, duration, name, service, kind, flags } = o.columns;
  for (const [what, column] of Object.entries({ parent, start, duration, name, service, kind, flags })) {
    if (column.length !== o.spans) throw new Error(`outline: column ${what} has ${column.length} values for ${o.spans} spans`);
  }
}

/** Parents come before their children. A parent that does not is an error of the server. */
function parents(list: number[]): Int32Array {
  const parent = Int32Array.from(list);
  for (let i = 0; i < parent.length; i++) if (parent[i] >= i || parent[i] < -1) throw new Error(`outline: parent ${list[i]} of span ${i} is not before it`);
  return parent;
}

function indexes(list: number[], size: number, what: string): Int32Array {
  const out = Int32Array.from(list);
  for (let i = 0; i < out.length; i++) if (out[i] < 0 || out[i] >= size) throw new Error(`outline: ${what} ${list[i]} of span ${i} is not in the list of ${size}`);
  return out;
}

/** One hexadecimal digit for each span. */
function digits(text: string): Uint8Array {
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    out[i] = code < 58 ? code - 48 : code - 87;
  }
  return out;
}

function idsOf(text: string, length: number): Uint8Array {
  const ids = bytesOf(text);
  if (ids.length !== length) throw new Error(`outline: ${ids.length} bytes of ids, expected ${length}`);
  return ids;
}

/** Decodes base64. */
export function bytesOf(text: string): Uint8Array {
  const binary = atob(text);
  const out = new Uint8Array(binary.length);
  for (let i = 0; i < out.length; i++) out[i] = binary.charCodeAt(i);
  return out;
}

/** A column of which only some values are given. Indexes out of range are ignored. */
function sparse(n: number, spans: number[] | undefined, values: number[] | undefined, otherwise: number): Int32Array {
  const out = new Int32Array(n).fill(otherwise);
  spans?.forEach((s, i) => {
    out[s] = values![i];
  });
  return out;
}

function shift(o: Outline, start: Float64Array, flags: Uint8Array): void {
  o.skew?.span.forEach((s, i) => {
    start[s] += o.skew!.shift[i];
    flags[s] |= flag.shifted;
  });
}

/** Moves the times so that the first start is 0. */
function extent(start: Float64Array, durations: number[]): { offset: number; duration: number; end: Float64Array } {
  let offset = Infinity;
  let last = -Infinity;
  const end = new Float64Array(start.length);
  for (let i = 0; i < start.length; i++) offset = Math.min(offset, start[i]);
  if (!Number.isFinite(offset)) offset = 0;
  for (let i = 0; i < start.length; i++) {
    start[i] -= offset;
    end[i] = start[i] + Math.max(0, durations[i]);
    last = Math.max(last, end[i]);
  }
  return { offset: Math.round(offset), duration: Math.max(0, last), end };
}

function decodeEvents(o: Outline): Pick<Columns, 'eventFirst' | 'eventTime' | 'eventName' | 'eventException'> {
  const eventFirst = new Int32Array(o.spans + 1);
  const e = o.events ?? { span: [], time: [], name: [], exception: '' };
  for (const s of e.span) eventFirst[s + 1]++;
  for (let i = 0; i < o.spans; i++) eventFirst[i + 1] += eventFirst[i];
  return { eventFirst, eventTime: Float64Array.from(e.time), eventName: Int32Array.from(e.name), eventException: digits(e.exception) };
}

function decodeWarnings(o: Outline, flags: Uint8Array): Pick<Columns, 'warningSpan' | 'warningText'> {
  const w = o.warnings ?? { span: [], text: [] };
  for (const s of w.span) flags[s] |= flag.warned;
  return { warningSpan: Int32Array.from(w.span), warningText: w.text };
}

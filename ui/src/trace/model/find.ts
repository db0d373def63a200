// Search within a trace, in what the outline holds.

import { flag, kindNames, type TraceModel } from './types';

/** Minimum number of hexadecimal digits that are compared with span ids. */
const minIDDigits = 4;

/** Whether a query is in the search language, which only the server can evaluate. */
export function isSearch(q: string): boolean {
  return /^[!(\s]*\{/.test(q);
}

/** Words of a query: separated by spaces, or in double quotes. A search is one word. */
export function terms(q: string): string[] {
  if (isSearch(q)) return [q.trim()];
  return [...q.toLowerCase().matchAll(/"([^"]+)"|[^\s"]+/g)].map((m) => m[1] ?? m[0]);
}

/**
 * Finds the spans that contain every word of `q`, each in the operation, service, called service, kind, status (`error`),
 * name of an event, text of a warning, or at the beginning of the span id. Case is ignored. Ascending.
 */
export function findSpans(m: TraceModel, q: string): Int32Array {
  return findWith(m, q, () => {});
}

/** Like findSpans. `more` sets the spans that contain a word elsewhere; `index` is the position of the word. */
export function findWith(m: TraceModel, q: string, more: (word: string, hits: Uint8Array, index: number) => void): Int32Array {
  const words = terms(q);
  if (words.length === 0) return new Int32Array(0);
  const hits = new Uint8Array(m.spans).fill(1);
  words.forEach((word, i) => {
    const elsewhere = new Uint8Array(m.spans);
    more(word, elsewhere, i);
    keep(m, hits, word, elsewhere);
  });
  return positions(hits);
}

/** Clears the hits that do not contain a word. `extra` has the spans that contain it elsewhere. */
function keep(m: TraceModel, hits: Uint8Array, word: string, extra: Uint8Array): void {
  const name = containing(m.names, word);
  const service = containing(m.services, word);
  const kind = containing(kindNames, word);
  const status = 'error'.includes(word) && word.length >= 3 ? flag.error : 0;
  markEvents(m, name, extra);
  m.warningText.forEach((text, i) => {
    if (text.toLowerCase().includes(word)) extra[m.warningSpan[i]] = 1;
  });
  if (new RegExp(`^[0-9a-f]{${minIDDigits},16}$`).test(word)) markIDs(m, word, extra);
  for (let i = 0; i < m.spans; i++) {
    const peer = m.peer[i];
    if (!(name[m.name[i]] | service[m.service[i]] | kind[m.kind[i]] | extra[i] | (m.flags[i] & status) | (peer >= 0 ? service[peer] : 0))) hits[i] = 0;
  }
}

/** 1 for each text that contains a word. */
function containing(texts: readonly string[], word: string): Uint8Array {
  return Uint8Array.from(texts, (text) => (text.toLowerCase().includes(word) ? 1 : 0));
}

function markEvents(m: TraceModel, name: Uint8Array, hits: Uint8Array): void {
  if (m.eventName.length === 0) return;
  for (let i = 0; i < m.spans; i++) for (let e = m.eventFirst[i]; e < m.eventFirst[i + 1]; e++) hits[i] |= name[m.eventName[e]];
}

/** Marks spans whose id begins with hexadecimal digits. */
function markIDs(m: TraceModel, digits: string, hits: Uint8Array): void {
  const whole = digits.length >> 1;
  const bytes = Array.from({ length: whole }, (_, k) => parseInt(digits.slice(2 * k, 2 * k + 2), 16));
  const half = digits.length % 2 ? parseInt(digits[digits.length - 1], 16) : -1;
  for (let i = 0; i < m.spans; i++) {
    let k = 0;
    while (k < whole && m.ids[8 * i + k] === bytes[k]) k++;
    if (k === whole && (half < 0 || m.ids[8 * i + whole] >> 4 === half)) hits[i] = 1;
  }
}

/** Like findSpans. `found` are the ids that the server found for each word, 8 bytes each. */
export function findAlso(m: TraceModel, q: string, found: Uint8Array[]): Int32Array {
  const all = bigs(m.ids);
  return findWith(m, q, (_, hits, word) => {
    const wanted = new Set(bigs(found[word] ?? new Uint8Array(0)));
    for (let i = 0; i < m.spans; i++) if (wanted.has(all[i])) hits[i] = 1;
  });
}

function bigs(ids: Uint8Array): BigUint64Array {
  return new BigUint64Array(ids.slice().buffer, 0, ids.length >> 3);
}

function positions(hits: Uint8Array): Int32Array {
  let n = 0;
  for (const h of hits) n += h;
  const out = new Int32Array(n);
  for (let i = 0, k = 0; i < hits.length; i++) if (hits[i]) out[k++] = i;
  return out;
}

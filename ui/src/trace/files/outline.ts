// The outline of a trace of a file, as the server would send it.

import type { Outline } from '../../api/types';
import { kindNames } from '../model/types';
import { orderSpans, type Ordered } from './order';
import { alignClocks } from './skew';
import type { FileSpan } from './span';

/** Makes the outline of the spans of a trace. Returns the spans in its order, too. */
export function outlineOf(traceID: string, unordered: FileSpan[]): { outline: Outline; spans: FileSpan[] } {
  const o = orderSpans(unordered);
  const services = new Words();
  const names = new Words();
  const { spans } = o;
  const outline: Outline = {
    traceID, start: String(o.begin), duration: extent(o), spans: spans.length, errors: spans.filter((s) => s.status === 'error').length, cut: false,
    services: services.words, names: names.words,
    columns: {
      parent: o.parent, start: o.start.map((t, i) => t - (i > 0 ? o.start[i - 1] : 0)), duration: spans.map((s) => s.duration),
      name: spans.map((s) => names.number(s.name)), service: spans.map((s) => services.number(s.service)),
      kind: spans.map((s) => Math.max(0, (kindNames as readonly string[]).indexOf(s.kind))).join(''), flags: o.flags.map((f) => f.toString(16)).join(''), id: base64(spans.map((s) => s.spanID)),
    },
    events: events(o, names), links: links(spans), peers: peers(o, services), skew: alignClocks(o), warnings: warnings(spans),
  };
  return { outline, spans };
}

/** Numbers words in the order of their first appearance. */
class Words {
  readonly words: string[] = [];
  private readonly index = new Map<string, number>();

  number(word: string): number {
    let n = this.index.get(word);
    if (n === undefined) this.index.set(word, (n = this.words.push(word) - 1));
    return n;
  }
}

function extent(o: Ordered): number {
  return o.spans.reduce((last, s, i) => Math.max(last, o.start[i] + s.duration), 0);
}

/** Packs hexadecimal ids into base64. */
function base64(ids: string[]): string {
  const piece = 3000; // a multiple of 3, so that pieces have no padding
  let out = '';
  for (let i = 0; i < ids.length; i += piece) {
    const hex = ids.slice(i, i + piece).join('');
    out += btoa(hex.replace(/../g, (h) => String.fromCharCode(parseInt(h, 16))));
  }
  return out;
}

function events(o: Ordered, names: Words): Outline['events'] {
  const e = { span: [] as number[], time: [] as number[], name: [] as number[], exception: '' };
  o.spans.forEach((s, i) => {
    const timed = s.events.map((x) => ({ name: x.name, time: x.time === '0' || s.start === '0' ? 0 : Number(BigInt(x.time) - BigInt(s.start)) }));
    for (const x of timed.sort((a, b) => a.time - b.time)) {
      e.span.push(i);
      e.time.push(x.time);
      e.name.push(names.number(x.name));
      e.exception += x.name === 'exception' ? '1' : '0';
    }
  });
  return e;
}

function links(spans: FileSpan[]): Outline['links'] {
  const with_ = spans.flatMap((s, i) => (s.links.length > 0 ? [i] : []));
  return { span: with_, count: with_.map((i) => spans[i].links.length) };
}

/** Attributes that name a called system, the most specific one first. */
const peerKeys = ['service.peer.name', 'peer.service', 'db.system.name', 'db.system', 'messaging.system'];

/** Calls of systems that have no spans of their own: spans without children that name a peer. */
function peers(o: Ordered, services: Words): Outline['peers'] {
  const answered = new Set(o.parent.filter((p) => p >= 0).map((p) => o.spans[p].spanID));
  const out = { span: [] as number[], service: [] as number[] };
  o.spans.forEach((s, i) => {
    if (s.kind === 'server' || s.kind === 'consumer' || answered.has(s.spanID)) return;
    const key = peerKeys.find((k) => s.attributes.some((a) => a.key === k && a.type === 'string' && a.value !== ''));
    if (!key) return;
    out.span.push(i);
    out.service.push(services.number(s.attributes.find((a) => a.key === key)!.value));
  });
  return out;
}

function warnings(spans: FileSpan[]): Outline['warnings'] {
  const out = { span: [] as number[], text: [] as string[] };
  spans.forEach((s, i) => {
    for (const text of s.warnings) {
      out.span.push(i);
      out.text.push(text);
    }
  });
  return out;
}

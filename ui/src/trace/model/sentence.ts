// The sentence about a trace: which services the critical path goes through.

import { duration, percent } from '../../shell/format';
import { t } from '../../shell/text';
import type { CriticalPath, Part, TraceModel } from './types';

/** Maximum number of parts that are named, and the minimum share of each. */
const maxNamed = 3;
const minShare = 0.05;
/** Share from which gaps are named. */
const minGapShare = 0.01;

/** Time of a service, of waiting on a peer, of gaps, or in which no span runs. */
export interface Sum {
  kind: 'service' | 'waiting' | 'gap' | 'idle';
  service: number;
  time: number;
  spans: Set<number>;
}

type Source = Pick<TraceModel, 'services' | 'service' | 'peer'>;

/** Time in which no span runs, in nanoseconds. */
export function idleTime(path: CriticalPath): number {
  let time = 0;
  for (let i = 0; i < path.span.length; i++) if (path.span[i] < 0) time += path.to[i] - path.from[i];
  return time;
}

/** Whether so much of a trace is idle that the sentence says it. */
export function saysIdle(m: Pick<TraceModel, 'idle' | 'duration'>): boolean {
  return m.idle < m.duration && m.idle >= minGapShare * m.duration;
}

/** Parts of the time on the critical path in which spans run, largest first; gaps and the rest at the end. */
export function sentenceParts(m: Source, path: CriticalPath): Part[] {
  const sums = sumSegments(m, path).filter((s) => s.kind !== 'idle');
  const total = sums.reduce((item, s) => item + s.time, 0);
  if (total <= 0) return [];
  const gap = sums.find((s) => s.kind === 'gap' && s.time / total >= minGapShare);
  const others = sums.filter((s) => s !== gap).sort((a, b) => b.time - a.time);
  const named = others.filter((s, i) => i === 0 || (i < maxNamed && s.time / total >= minShare));
  const rest = others.slice(named.length);
  const parts = [...named, ...(gap ? [gap] : []), ...(rest.length === 1 ? rest : [])].map((s) => part(m, s, total));
  if (rest.length > 1) parts.push(restPart(rest, total));
  return parts;
}

/** Sums time by service or peer. Gaps of all spans are one sum, and so is the time in which none runs. */
export function sumSegments(m: Source, path: CriticalPath): Sum[] {
  const sums = new Map<number, Sum>();
  for (let i = 0; i < path.span.length; i++) {
    const s = path.span[i];
    const kind = s < 0 ? 'idle' : path.gap[i] ? 'gap' : m.peer[s] >= 0 ? 'waiting' : 'service';
    const service = kind === 'waiting' ? m.peer[s] : kind === 'service' ? m.service[s] : -1;
    const key = kind === 'idle' ? -2 : kind === 'gap' ? -1 : 2 * service + (kind === 'waiting' ? 1 : 0);
    let sum = sums.get(key);
    if (!sum) sums.set(key, (sum = { kind, service, time: 0, spans: new Set() }));
    sum.time += path.to[i] - path.from[i];
    sum.spans.add(s);
  }
  return [...sums.values()];
}

function part(m: Source, s: Sum, total: number): Part {
  const name = m.services[s.service] || t('unknown service');
  const text = s.kind === 'gap' ? t('gaps') : s.kind === 'waiting' ? t('waiting on {name}', { name }) : name;
  const key = s.service < 0 ? s.kind : `${s.kind}:${m.services[s.service]}`;
  return { kind: s.kind as Part['kind'], key, service: s.service, count: 1, time: s.time, share: s.time / total, text, spans: Int32Array.from(s.spans).sort() };
}

function restPart(rest: Sum[], total: number): Part {
  const time = rest.reduce((item, s) => item + s.time, 0);
  const spans = Int32Array.from(new Set(rest.flatMap((s) => [...s.spans]))).sort();
  return { kind: 'others', key: 'others', service: -1, count: rest.length, time, share: time / total, text: t('in {rest} others', { rest: rest.length }), spans };
}

/** Index of the part that a URL names, or -1. Links of earlier versions have the English text of the part instead of its key. */
export function partIndex(parts: Part[], name: string): number {
  const key = name.replace(/^waiting on /, 'waiting:').replace(/^gaps$/, 'gap').replace(/^in \d+ others$/, 'others');
  return name ? parts.findIndex((p) => p.key === key || p.key === `service:${name}`) : -1;
}

/** The sentence as text: `1.84 s: 61 % payment, 23 % waiting on redis, 7 % gaps, 9 % in 10 others`; `5 m 06 s, 4 m 53 s of it idle. The other 12.8 s: 98 % mail`. */
export function sentenceText(m: Pick<TraceModel, 'sentence' | 'duration' | 'idle'>): string {
  const parts = m.sentence.map((p) => `${percent(p.share)} ${p.text}`);
  return sentenceLead(m) + (parts.length ? ': ' + parts.join(', ') : '');
}

/** What the shares of the sentence are shares of. */
function sentenceLead(m: Pick<TraceModel, 'duration' | 'idle'>): string {
  const values = { total: duration(m.duration), idle: duration(m.idle), rest: duration(m.duration - m.idle) };
  return saysIdle(m) ? t('{total}, {idle} of it idle. The other {rest}', values) : values.total;
}

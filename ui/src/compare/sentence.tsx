import type { ComponentChildren } from 'preact';
import { duration } from '../shell/format';
import { t, Text } from '../shell/text';
import type { Pair } from './use-pair';
import type { PathDifference } from './types';
import css from './compare.module.css';

/** Share of the difference from which a part is named, and the maximum number of named parts. */
const namedShare = 0.1;
const maxNamed = 3;
/** Share of the longer trace up to which durations are about the same. */
const sameShare = 0.01;

/** A difference with its sign: `+1.45 s`. */
export function signed(ns: number): string {
  return ns > 0 ? `+${duration(ns)}` : duration(ns);
}

/** Parts of the difference that are named, and the largest of the others. */
export function namedParts(parts: PathDifference[], total: number): { named: PathDifference[]; rest: number } {
  const least = namedShare * Math.max(Math.abs(total), Math.abs(parts[0]?.time ?? 0));
  const named = parts.filter((p, i) => i < maxNamed && p.time !== 0 && Math.abs(p.time) >= least);
  return { named, rest: parts.slice(named.length).reduce((most, p) => Math.max(most, Math.abs(p.time)), 0) };
}

/** The sentence of the page: by how much A is longer, where the time goes, and how much everything else differs at most. */
export function Sentence({ pair }: { pair: Pair }) {
  const { a, b, comparison } = pair;
  const total = a.duration - b.duration;
  const { named, rest } = namedParts(comparison.parts, total);
  const same = Math.abs(total) <= sameShare * Math.max(a.duration, b.duration);
  return (
    <h1 class={css.lead}>
      <Lead pair={pair} total={total} same={same} />
      {!same && named.length > 0 && <>: {named.map((p, i) => <span key={i}>{i > 0 && ', '}<PartText part={p} /></span>)}</>}
      {'. '}
      {!same && <span class={css.rest}>{rest > 0 ? t('Everything else differs by at most {rest}.', { rest: duration(rest) }) : t('Nothing else differs.')}</span>}
    </h1>
  );
}

function Lead({ pair, total, same }: { pair: Pair; total: number; same: boolean }) {
  const typical = pair.typical !== null;
  const by = <b class={total > 0 ? css.more : css.less}>{total > 0 ? '▲' : '▼'} {duration(Math.abs(total))}</b>;
  if (same) return <>{typical ? t('A takes about as long as a typical trace') : t('A takes about as long as B')}</>;
  if (typical) return total > 0 ? <Text of="A takes {by} longer than a typical trace" by={by} /> : <Text of="A takes {by} less than a typical trace" by={by} />;
  return total > 0 ? <Text of="A takes {by} longer than B" by={by} /> : <Text of="A takes {by} less than B" by={by} />;
}

function PartText({ part }: { part: PathDifference }) {
  const time: ComponentChildren = <b class={part.time > 0 ? css.more : css.less}>{signed(part.time)}</b>;
  const name = part.name || t('unknown service');
  if (part.kind === 'gap') return <Text of="{time} in gaps" time={time} />;
  if (part.kind === 'idle') return <Text of="{time} idle" time={time} />;
  return part.kind === 'waiting' ? <Text of="{time} waiting on {name}" time={time} name={name} /> : <Text of="{time} in {name}" time={time} name={name} />;
}

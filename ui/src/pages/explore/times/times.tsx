import { useMemo, useRef, useState } from 'preact/hooks';
import { authorization, tenant } from '../../../api/client';
import type { Groups } from '../../../api/groups';
import { fieldLabel } from '../../../query/field';
import { slowNow } from '../../../shell/clock';
import { Button, Input, Segmented } from '../../../shell/controls';
import { Popover } from '../../../shell/floating';
import { count, iso, nanos, percent } from '../../../shell/format';
import { zone } from '../../../shell/preferences';
import { useRovingRows } from '../../../shell/roving';
import { Empty, Failure, Messages, Partial, Progress, Skeleton } from '../../../shell/states';
import { t, tn } from '../../../shell/text';
import { instantText, parseRange, rangeName } from '../../../shell/time-input';
import { navigate, view } from '../../../shell/url';
import { useRequest } from '../../../shell/use-request';
import { KeyChoice } from '../groups/key-choice';
import { keysOf, ofTraces } from '../groups/model';
import type { Run } from '../run';
import type { TabProps } from '../tabs';
import { ChangeTable } from './change-table';
import { changesOf, earlierName, earlierPeriod, isWhole, type Change, type Kind, type Period } from './model';
import css from './times.module.css';

const maxGroups = 1000;
const rowsPerStep = 100;

/** The matching spans of the time range beside those of an earlier one, in groups. */
export default function TimesTab({ run }: TabProps) {
  const { by, against } = view.value;
  const keys = keysOf(by, run.q);
  const earlier = earlierPeriod(against, run);
  return (
    <div class={css.tab}>
      <div class={css.head}>
        <span class={css.choice}><span>{t('Compared with')}</span><EarlierChoice run={run} earlier={earlier} /></span>
        <KeyChoice keys={keys} run={run} />
      </div>
      <Comparison key={JSON.stringify([run, keys, earlier, authorization.value, tenant.value])} run={run} keys={keys} earlier={earlier} />
    </div>
  );
}

/** The answers to one question: another one needs another component, so that both are always of the same question. */
function Comparison({ run, keys, earlier }: { run: Run; keys: string[]; earlier: Period }) {
  const of = ofTraces(keys) ? 'traces' : 'spans';
  const params = (p: Period) => ({ q: run.q, start: nanos(p.from), end: nanos(p.to), by: keys.join(', '), of, sort: 'count', limit: maxGroups });
  const now = useRequest<Groups>('groups', params(run), { maxAge: 300_000 });
  const then = useRequest<Groups>('groups', params(earlier), { maxAge: 300_000 });
  const [rows, setRows] = useState(rowsPerStep);
  const [a, b] = [now.data, then.data];
  const section = useRef<HTMLDivElement>(null);
  useRovingRows(section);
  const error = now.error ?? then.error;
  const changes = useMemo(() => (a && b && !error ? changesOf(a, b, run, earlier) : null), [a, b, error]);
  const sample = Math.min(a?.share ?? 1, b?.share ?? 1);
  return (
    <>
      <Progress active={now.loading || then.loading} label={t('Comparing two times')} />
      <div class={css.notice}>
        {error && <Failure what={t('Comparison')} error={error} retry={() => { now.retry(); then.retry(); }} />}
        {sample < 1 && <Partial>{t('Counts are estimates from a sample: {share} of the spans were examined.', { share: percent(sample) })}</Partial>}
        {a && b && !(isWhole(a) && isWhole(b)) && <Partial>{t('There are too many groups: only the largest ones of each time are compared.')}</Partial>}
        <Messages messages={[...now.messages, ...then.messages]} />
      </div>
      {!changes && !error && <div class={css.notice}><Skeleton rows={8} height="var(--row-h-list)" /></div>}
      {changes && changes.length === 0 && <div class={css.notice}><Empty title={t('No span matches in either time.')} /></div>}
      {changes && changes.length > 0 && <h2 class={css.sentence}>{sentenceOf(changes, keys, a!, b!)}</h2>}
      {changes && changes.length > 0 && <div ref={section}><ChangeTable changes={changes.slice(0, rows)} keys={keys} run={run} earlier={earlier} /></div>}
      {changes && changes.length > rows && <p class={css.more}><Button onClick={() => setRows(rows + rowsPerStep)}>{t('Show more')}</Button><span>{t('{shown} of {all} groups', { shown: count(rows), all: count(changes.length) })}</span></p>}
    </>
  );
}

const kinds: [Kind, (n: number) => string][] = [
  ['failing', (n) => tn(n, '{n} fails more often', '{n} fail more often')], ['slower', (n) => tn(n, '{n} is slower', '{n} are slower')], ['new', (n) => tn(n, '{n} is new', '{n} are new')], ['gone', (n) => tn(n, '{n} is gone', '{n} are gone')],
  ['recovered', (n) => tn(n, '{n} fails less often', '{n} fail less often')], ['faster', (n) => tn(n, '{n} is faster', '{n} are faster')], ['more', (n) => tn(n, '{n} has more calls', '{n} have more calls')], ['fewer', (n) => tn(n, '{n} has fewer calls', '{n} have fewer calls')],
];

/** "12 services: 1 fails more, 2 are slower". */
export function sentenceOf(changes: Change[], keys: string[], now: Groups, then: Groups): string {
  if (then.groups.count.length === 0) return t('No span matches in the earlier time.');
  if (now.groups.count.length === 0) return t('No span matches in this time range.');
  const n = count(changes.length);
  const what = keys.join() === 'service' ? tn(changes.length, '{n} service', '{n} services', { n }) : tn(changes.length, '{n} value of {keys}', '{n} values of {keys}', { n, keys: keys.map(fieldLabel).join(', ') });
  const parts = kinds.map(([kind, text]) => [changes.filter((c) => c.kinds.includes(kind)).length, text] as const).filter(([n]) => n > 0).map(([n, text]) => text(n));
  return parts.length > 0 ? t('{what}: {parts}', { what, parts: parts.join(', ') }) : t('{what}: nothing differs clearly', { what });
}

/** Chooses the earlier time: one of three, or any. */
function EarlierChoice({ run, earlier }: { run: Period; earlier: Period }) {
  const name = earlierName(view.value.against);
  const set = (against: string): void => navigate({ against: against === 'day' ? '' : against });
  const range = rangeName({ from: iso(earlier.from), to: iso(earlier.to) }, zone.value, slowNow.value);
  return (
    <>
      <Segmented
        label={t('Compared with')} value={name ?? 'own'} onChange={(v) => { if (v !== 'own') set(v); }}
        segments={[{ value: 'day', label: t('one day earlier') }, { value: 'week', label: t('one week earlier') }, { value: 'before', label: t('the preceding period') }, ...(name ? [] : [{ value: 'own' as const, label: t('another time') }])]}
      />
      <Popover label={t('Another time')} class={css.surface} trigger={(p) => <Button {...p} opens icon="clock" aria-label={t('Earlier time: {range}', { range })}>{range}</Button>}>
        {(close) => <OwnTime earlier={earlier} run={run} onDone={(p) => { close(); set(`${iso(p.from)}..${iso(p.to)}`); }} />}
      </Popover>
    </>
  );
}

function OwnTime({ earlier, run, onDone }: { earlier: Period; run: Period; onDone: (p: Period) => void }) {
  const z = zone.value;
  const [from, setFrom] = useState(() => instantText(iso(earlier.from), z, run.to));
  const [to, setTo] = useState(() => instantText(iso(earlier.to), z, run.to));
  const [wrong, setWrong] = useState('');
  const submit = (e: Event): void => {
    e.preventDefault();
    const now = Date.now();
    const parsed = parseRange(from, to, z, now);
    if ('error' in parsed) return setWrong(parsed.error);
    const at = (end: string): number => (end === 'now' ? now : Date.parse(end));
    onDone({ from: at(parsed.range.from), to: at(parsed.range.to) });
  };
  return (
    <form class={css.form} onSubmit={submit}>
      <label><span>{t('From')}</span><Input value={from} placeholder="14:06" onInput={(e) => { setFrom(e.currentTarget.value); setWrong(''); }} /></label>
      <label><span>{t('To')}</span><Input value={to} placeholder="14:42" onInput={(e) => { setTo(e.currentTarget.value); setWrong(''); }} /></label>
      <Button type="submit">{t('Apply')}</Button>
      {wrong && <p role="alert" class={css.wrong}>{wrong}</p>}
    </form>
  );
}

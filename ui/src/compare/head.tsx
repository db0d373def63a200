import { Badge, Button } from '../shell/controls';
import { Menu, type MenuItem } from '../shell/floating';
import { count, duration, shortID, short } from '../shell/format';
import { Mark } from '../shell/icons';
import { recentTraces } from '../shell/recent';
import { t, tn } from '../shell/text';
import { Time } from '../shell/time';
import { link, navigate, view, type Route } from '../shell/url';
import { operation } from '../trace/model/span';
import type { TraceModel } from '../trace/model/types';
import { Sentence } from './sentence';
import { Strip } from './strip';
import { baseline, type Pair } from './use-pair';
import css from './compare.module.css';

/** Addresses of the pages of traces and of comparisons: of the server, or of files. */
export interface Places {
  trace: (id: string) => Route;
  pair: (a: string, b: string) => Route;
  /** Whether the server can choose B. */
  typical: boolean;
}

/** Head of the page: where this is, the sentence, and both traces on one scale. */
export function Head({ pair, places }: { pair: Pair; places: Places }) {
  const { a, b } = pair;
  const longest = Math.max(a.duration, b.duration);
  const root = a.roots.length > 0 ? operation(a, a.roots[0]) : t('Trace without spans');
  return (
    <header class={css.head}>
      <div class={css.crumb}><a href={link(places.trace(a.traceID))}>{root}</a><span aria-hidden="true">/</span><span>{t('Compare')}</span></div>
      <Sentence pair={pair} />
      <div class={css.sides}>
        <SideFacts name="A" model={a} longest={longest} href={link(places.trace(a.traceID))} />
        <SideFacts name="B" model={b} longest={longest} href={link(places.trace(b.traceID))} typical={pair} />
        <div class={css.buttons}>
          <Button onClick={() => navigate({ route: places.pair(b.traceID, a.traceID) })}>{t('Swap')}</Button>
          <Menu label={t('Choose B')} align="end" items={choices(pair, places)} trigger={(p) => <Button opens {...p}>{t('Choose B')}</Button>} />
        </div>
      </div>
    </header>
  );
}

function SideFacts({ name, model, longest, href, typical }: { name: 'A' | 'B'; model: TraceModel; longest: number; href: string; typical?: Pair }) {
  const errors = model.facts.errors.length;
  return (
    <section class={css.side} aria-label={name === 'A' ? t('Trace A') : t('Trace B')}>
      <div class={css.sideFacts}>
        <span class={name === 'A' ? css.keyA : css.keyB} aria-hidden="true">{name}</span>
        <b class={css.total}>{duration(model.duration)}</b>
        {errors > 0 ? <span class={css.errors}><Mark kind="error" size={12} label="" />{tn(errors, '{n} error', '{n} errors', { n: count(errors) })}</span> : <span>{t('no errors')}</span>}
        <span>{tn(model.spans, '{n} span', '{n} spans', { n: count(model.spans) })}</span>
        <span class={css.grow} />
        {typical?.typical && <Badge title={chosen(typical)}>{badge(typical)}</Badge>}
        <a class={css.id} href={href} title={model.traceID}>{shortID(model.traceID.replace(/^0{16}/, ''))}</a>
        <Time at={model.begin} precision={1} />
      </div>
      <Strip model={model} longest={longest} />
    </section>
  );
}

/** How B was chosen, in a few words. */
function badge({ typical }: Pair): string {
  const calls = short(typical!.calls || typical!.examined);
  return typical!.same ? t('typical: median of {chosenFrom} of {calls}', { chosenFrom: count(typical!.chosenFrom), calls }) : t('similar: median of {chosenFrom} of {calls}', { chosenFrom: count(typical!.chosenFrom), calls });
}

/** How B was chosen, in a sentence. */
function chosen({ typical }: Pair): string {
  const { chosenFrom, examined, calls, service, name, same } = typical!;
  const values = { chosenFrom: count(chosenFrom), examined: count(examined), calls: count(calls), service, name };
  return same
    ? t('{calls} traces or calls of {service} {name} were counted, {examined} of them read. This trace has the median duration of the {chosenFrom} with the same operations as A.', values)
    : t('{calls} traces or calls of {service} {name} were counted, {examined} of them read. A\'s operations are unusual; this trace has the median duration of the {chosenFrom} with the most similar operations.', values);
}

/** What B can be: a typical trace, or one that was opened lately. */
function choices({ a, b }: Pair, places: Places): MenuItem[] {
  const go = (id: string) => () => navigate({ route: places.pair(a.traceID, id) });
  const recent = places.typical ? recentTraces.value.filter((r) => r.id !== a.traceID && r.id !== b.traceID).slice(0, 8) : [];
  const { route } = view.value;
  return [
    ...(places.typical ? [{ label: t('A typical trace'), checked: route.page === 'compare' && route.b === baseline, onSelect: go(baseline) }] : []),
    ...recent.map((r) => ({ label: `${r.name} ${shortID(r.id)}`, onSelect: go(r.id) })),
    { label: places.typical ? t('Search for traces and select two of them') : t('Select two traces in the list'), onSelect: () => navigate({ route: places.typical ? { page: 'explore' } : { page: 'open' } }) },
  ];
}

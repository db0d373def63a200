import { useRef } from 'preact/hooks';
import type { Connection, ServiceMap } from '../../api/map';
import { classes } from '../../shell/controls';
import { count, none, percentile, rate, share } from '../../shell/format';
import { useRovingRows } from '../../shell/roving';
import { ServiceMark } from '../../shell/service-mark';
import { AnswerState, Messages } from '../../shell/states';
import { t, tn } from '../../shell/text';
import { link } from '../../shell/url';
import type { RequestState } from '../../shell/use-request';
import { edgeQuery } from '../map/queries';
import { spansOf } from './queries';
import css from './service.module.css';

/** The other end of calls. */
export interface Neighbor {
  name: string;
  /** It has no spans of its own. */
  peer: boolean;
  connection: Connection;
  calls: number;
  errors: number;
  p95: number | null;
}

/** The callers of a service, or what it calls: most calls first. */
export function neighborsOf(m: ServiceMap, service: string, side: 'callers' | 'calls'): Neighbor[] {
  const self = m.nodes.name.findIndex((n, i) => n === service && !m.nodes.peer[i]);
  const [here, there] = side === 'callers' ? [m.edges.child, m.edges.parent] : [m.edges.parent, m.edges.child];
  const list: Neighbor[] = [];
  here.forEach((node, i) => {
    if (node !== self || self < 0 || there[i] === self) return;
    list.push({ name: m.nodes.name[there[i]], peer: m.nodes.peer[there[i]], connection: m.nodes.connection[there[i]], calls: m.edges.calls[i], errors: m.edges.errors[i], p95: m.edges.p95[i] });
  });
  return list.sort((a, b) => b.calls - a.calls || (a.name < b.name ? -1 : 1));
}

const most = 12;
const failingFrom = 0.01;
const failingErrors = 5;

/** Callers and calls of a service with rate, errors and p95. `of`: the time of the numbers. `outgoing`: it has client or producer spans. */
export function Neighbors({ answer, service, seconds, of = '', outgoing: some }: { answer: RequestState<ServiceMap>; service: string; seconds: number; of?: string; outgoing?: boolean }) {
  const { data, messages } = answer;
  if (!data) return <AnswerState what={t('Callers and calls')} answer={answer} rows={6} height="28px" />;
  const callers = neighborsOf(data, service, 'callers');
  const calls = neighborsOf(data, service, 'calls');
  const between = (n: Neighbor, error = ''): string => spansOf(n.name) + ' > ' + spansOf(service, error);
  const outgoing = (n: Neighbor, error = ''): string => edgeQuery({ name: service }, n, error);
  return (
    <>
      <List service={service} of={of} title={t('Callers')} list={callers} seconds={seconds} query={between} empty={t('No service calls this one: it starts traces, or its callers are not instrumented.')} />
      <List service={service} of={of} title={t('Calls')} list={calls} seconds={seconds} query={outgoing} empty={some ? t('Its outgoing calls do not say what they call. Set an attribute such as peer.service, db.system.name or messaging.system.') : t('It calls no other service.')} />
      <Messages messages={messages} />
    </>
  );
}

interface ListProps {
  service: string;
  title: string;
  of: string;
  list: Neighbor[];
  seconds: number;
  query: (n: Neighbor, error?: string) => string;
  empty: string;
}

function List({ service, title, of, list, seconds, query, empty }: ListProps) {
  const body = useRef<HTMLTableElement>(null);
  useRovingRows(body);
  return (
    <section class={css.side} aria-label={title}>
      <div class={css.sideHead}><h2>{title}</h2><span class={css.second}>{count(list.length)}{of && `, ${of}`}</span><span class={css.grow} /><a href={link({ page: 'map' }, { focus: service })}>{t('Map')}</a></div>
      {list.length === 0 ? <p class={css.empty}>{empty}</p> : (
        <table ref={body} class={css.edges} role="grid" aria-label={title}>
          <thead><tr><th scope="col"><span class="visually-hidden">{t('Service')}</span></th><th scope="col" class={css.number}>{t('per second')}</th><th scope="col" class={css.number}>{t('errors')}</th><th scope="col" class={css.number}>p95</th></tr></thead>
          <tbody>{list.slice(0, most).map((n) => <Edge key={n.name} n={n} seconds={seconds} query={query} />)}</tbody>
        </table>
      )}
      {list.length > most && <p class={css.empty}><a href={link({ page: 'map' }, { focus: service })}>{t('{n} more on the map', { n: count(list.length - most) })}</a></p>}
    </section>
  );
}

function Edge({ n, seconds, query }: { n: Neighbor; seconds: number; query: ListProps['query'] }) {
  const part = n.calls > 0 ? n.errors / n.calls : 0;
  const failing = part >= failingFrom && n.errors >= failingErrors;
  const explore = (error = ''): string => link({ page: 'explore' }, { q: query(n, error) });
  return (
    <tr data-row>
      <th scope="row"><a class={css.neighbor} href={n.peer ? explore() : link({ page: 'service', name: n.name })}><ServiceMark name={n.name} inferred={n.peer} /></a></th>
      <td class={css.number}><a class={css.cellLink} href={explore()} title={tn(n.calls, '{n} call', '{n} calls', { n: count(n.calls) }) + '. ' + t('Traces with these calls')}>{rate(n.calls / seconds)}</a></td>
      <td class={classes(css.number, failing ? css.failing : n.errors === 0 && css.zero)}>{n.errors > 0 ? <a class={css.cellLink} href={explore('error')} title={t('{failed} of {calls} failed', { failed: count(n.errors), calls: count(n.calls) }) + '. ' + t('Traces with failed calls')}>{share(part)}</a> : '0'}</td>
      <td class={css.number}>{n.p95 === null ? none : percentile(n.p95)}</td>
    </tr>
  );
}

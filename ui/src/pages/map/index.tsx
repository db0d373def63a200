import { useLayoutEffect, useMemo } from 'preact/hooks';
import type { Params } from '../../api/client';
import type { ServiceMap } from '../../api/map';
import { nanos } from '../../shell/format';
import { resolveRange } from '../../shell/range';
import { showServices } from '../../shell/service-color';
import { AnswerState, Empty, Failure, Messages, Partial, Progress } from '../../shell/states';
import { t } from '../../shell/text';
import { useTitle } from '../../shell/title';
import { link, navigate, view, type Range } from '../../shell/url';
import { rangeParams, useRequest } from '../../shell/use-request';
import { GraphView } from './graph-view';
import { graphOf, type Graph } from './model';
import { pictureOf, type Choice, type Metric, type Picture } from './picture';
import { Side } from './side';
import { Tools } from './tools';
import { useLayout } from './use-layout';
import css from './map.module.css';

/** The day before a range, in whole minutes, so that answers can be kept. */
function dayBefore(range: Range, now: number): Params {
  const start = Math.floor(resolveRange(range, now).from / 60_000) * 60_000;
  return { start: nanos(start - 24 * 3600_000), end: nanos(start) };
}

/** Milliseconds between refreshes of ranges that end now. */
const refreshEvery = 60_000;

/** Number of services above which a focus hides what is further than this number of calls away. */
const [largeMap, nearDepth] = [60, 2];

/** `/dependencies`: who calls whom, how often, how fast, and with which errors. */
export default function MapPage() {
  useTitle(t('Map'));
  const { range } = view.value;
  const every = range.to === 'now' ? refreshEvery : 0;
  const whole = useRequest<ServiceMap>('map', (now) => rangeParams(range, now), { every });
  // The whole map has the busiest services only: others are read with what is around them.
  const { focus, depth } = view.value;
  const missing = focus !== '' && whole.data !== undefined && whole.messages.length > 0 && !whole.data.nodes.name.includes(focus);
  const around = useRequest<ServiceMap>(missing ? 'map' : null, (now) => ({ ...rangeParams(range, now), service: focus, depth: depth || nearDepth }), { every });
  const answer = missing ? around : whole;
  const before = useRequest<ServiceMap>(answer.data?.measured ? 'map' : null, (now) => dayBefore(range, now), { maxAge: 300_000 });
  const all = useMemo(() => answer.data && graphOf(answer.data, before.data), [answer.data, before.data]);
  return (
    <div class={css.page}>
      <Progress active={answer.loading} label={t('Loading the map')} />
      {answer.messages.length > 0 && <div class={css.messages}><Messages messages={answer.messages} /></div>}
      {answer.data && !answer.data.measured && <div class={css.messages}><Partial>{t('The store counts calls, but does not record their durations and types.')}</Partial></div>}
      <AnswerState what={t('Map')} answer={answer} class={css.messages} rows={6} />
      {all && all.edges.length === 0 && <NoEdges services={all.nodes.length} />}
      {all && all.edges.length > 0 && <Explorer all={all} cut={whole.messages.length > 0} />}
    </div>
  );
}

/** `cut`: there are services that the map leaves out. */
function Explorer({ all, cut }: { all: Graph; cut: boolean }) {
  const { focus, depth, least, groups, pick, sort, tab, only } = view.value;
  const choice = useMemo((): Choice => ({ focus, depth, least, groups }), [focus, depth, least, groups.join('\n')]);
  const picture = useMemo(() => pictureOf(all, choice), [all, choice]);
  useLayoutEffect(() => showServices(picture.graph.nodes.map((n) => n.name)), [picture]);
  const metric: Metric = tab === 'errors' || tab === 'p95' ? tab : 'requests';
  const onFocus = (name: string): void => navigate({ focus: name, depth: depth || (all.nodes.length > largeMap ? nearDepth : 0), pick: [] });
  const onPick = (names: string[]): void => navigate({ pick: names.join('\n') === pick.join('\n') ? [] : names }, { replace: true });
  const onOpen = (name: string): void => navigate({ groups: [...groups, name], pick: [] });
  return (
    <>
      <Tools all={all} cut={cut} picture={picture} choice={choice} metric={metric} onFocus={onFocus} onChange={(change) => navigate(change)} onMetric={(m) => navigate({ tab: m === 'requests' ? '' : m }, { replace: true })} />
      <div class={css.columns}>
        <Drawing picture={picture} focus={focus} pick={pick} metric={metric} onPick={onPick} onFocus={onFocus} onOpen={onOpen} />
        <Side
          picture={picture} all={all} focus={focus} pick={pick} sort={sort} only={only} onOnly={(o) => navigate({ only: o }, { replace: true })} onSort={(s) => navigate({ sort: s === '-errors' ? '' : s }, { replace: true })}
          onPick={onPick} onFocus={onFocus} onOpen={onOpen}
        />
      </div>
    </>
  );
}

interface DrawingProps {
  picture: Picture;
  focus: string;
  pick: string[];
  metric: Metric;
  onPick: (names: string[]) => void;
  onFocus: (name: string) => void;
  onOpen: (group: string) => void;
}

function Drawing({ picture, ...rest }: DrawingProps) {
  const { placed, busy, error } = useLayout(picture.graph, rest.focus);
  return (
    <section class={css.drawing} aria-label={t('Drawing')} data-state={busy ? 'busy' : 'ready'}>
      <Progress active={busy} label={t('Placing services')} />
      {error && <Failure what={t('Drawing')} error={error} />}
      {placed && <GraphView placed={placed} {...rest} />}
      {placed && picture.graph.edges.length === 0 && <div class={css.over}><Empty title={t('No edge is shown')}><button type="button" class={css.way} onClick={() => navigate({ least: -1, depth: 0 })}>{t('Show all edges')}</button></Empty></div>}
    </section>
  );
}

/** Says what makes an edge. */
function NoEdges({ services }: { services: number }) {
  return (
    <div class={css.messages}>
      <Empty title={t('There are no calls between services in this time range')}>
        <p class={css.rule}>{t('An edge is a span whose parent is in another service: usually a client span with a server child, or a producer with a consumer. A client or producer span without a child is also an edge if it names what it calls in peer.service, db.system.name, messaging.system or server.address.')}</p>
        <p class={css.rule}>{services > 0 ? t('Services send spans, but none of these is an edge. Check that they propagate the trace context and set the span kind.') : t('No service has sent spans in this time range.')}</p>
        <button type="button" class={css.way} onClick={() => navigate({ range: { from: 'now-24h', to: 'now' } })}>{t('Last 24 hours')}</button>
        <a href={link({ page: 'services' })}>{t('Services')}</a>
      </Empty>
    </div>
  );
}

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { slowestExemplar } from '../../../charts/exemplar';
import { HeatmapChart } from '../../../charts/heatmap';
import { addCondition, searchOf, withoutSelect } from '../../../query/edit';
import { remember } from '../../../query/history';
import { problemIn } from '../../../query/problem';
import type { Incidents } from '../../../api/incidents';
import type { Heatmap } from '../../../api/types';
import { capable } from '../../../shell/config';
import { Button } from '../../../shell/controls';
import { count, duration, iso, millis, nanos } from '../../../shell/format';
import { useKeys } from '../../../shell/keys';
import { lazy } from '../../../shell/lazy';
import { announce } from '../../../shell/live-region';
import { Partial } from '../../../shell/states';
import { t, tn } from '../../../shell/text';
import { toast } from '../../../shell/toast';
import { link, linked, navigate, view, type Box } from '../../../shell/url';
import { rangeParams, useRequest } from '../../../shell/use-request';
import Examples from '../examples';
import { markedSearch, selectsAll } from '../links';
import type { Run } from '../run';
import { SearchHead } from '../search-head';
import { TraceTable } from '../trace-table';
import { Waiting } from './waiting';
import { useHold } from './use-hold';
import { useLive, type LiveState } from './use-live';
import page from '../explore.module.css';
import css from './live.module.css';

const HeatmapTable = lazy<{ data: Heatmap }>(() => import('../../../charts/heatmap-table'));

/** Explore with `live=1`: traces that match the search, as they arrive. */
export default function LivePage() {
  const { q } = view.value;
  const [draft, setDraft] = useState(q);
  useEffect(() => setDraft(q), [q]);
  const [paused, setPaused] = useState(false);
  const [table, setTable] = useState(false);
  const content = useRef<HTMLDivElement>(null);
  const hold = useHold(content, paused);
  const live = useLive(withoutSelect(q), hold);
  const { connection, rows, heat } = live;
  const run = useMemo(() => runOf(q, heat), [q, heat?.start]);
  const refused = connection.state === 'failed' && connection.error.status === 400 ? connection.error.message : '';
  const problem = refused && draft === q ? problemIn(refused, q) : null;
  const execute = (text: string): void => {
    const next = searchOf(text);
    remember(next);
    setDraft(next);
    if (next === q) live.retry();
    else navigate({ q: next, sel: null });
  };
  const pause = (on: boolean): void => {
    setPaused(on);
    announce(on ? t('Paused') : t('Live resumed'));
  };
  useKeys(t('Live'), [{ keys: [' '], label: t('Pause or continue'), run: (e) => (onControl(e) ? false : pause(!paused)) }]);
  return (
    <div class={page.page}>
      <h1 class="visually-hidden">{t('Explore, live')}</h1>
      <SearchHead draft={draft} onDraft={setDraft} onRun={execute} problem={problem} period={() => ({ start: run.start, end: run.end })} />
      <div ref={content} class={page.content}>
        {problem ? <Examples onRun={execute} /> : <>
          <section aria-label={t('Live traces')}>
            <div class={css.head}>
              <State live={live} paused={paused} />
              {heat && <Totals heat={heat} />}
              <OpenIncident />
              <span class={css.grow} />
              <Button kind="quiet" aria-pressed={table} onClick={() => setTable(!table)}>{t('Table view')}</Button>
              <Button icon={paused ? 'play' : 'pause'} aria-keyshortcuts="Space" onClick={() => pause(!paused)}>{paused ? t('Continue') : t('Pause')}<kbd class={css.wide}>{t('Space')}</kbd></Button>
              <Button onClick={() => navigate({ live: false })}>{t('Stop live')}</Button>
            </div>
            {heat && table && <HeatmapTable data={heat} />}
            {heat && !table && (
              <div {...hold.overHeat}>
                <HeatmapChart data={heat} box={null} marks={[]} slides={!hold.heat && connection.state === 'open'} onBox={(box) => select(box, heat)} onOpen={(cell) => openSlowest(heat, cell, q)} example={(cell) => exampleText(heat, cell)} />
              </div>
            )}
          </section>
          <section aria-label={t('Results')} class={css.list} {...hold.overRows}>
            <ListHead held={rows.held} hold={hold} paused={paused} onShow={() => { pause(false); hold.release(); }} />
            <LeftOut live={live} />
            {rows.shown.length > 0 && <TraceTable traces={rows.shown} fields={[]} run={run} arriving />}
            <Waiting live={live} empty={rows.shown.length === 0} earlier={(heat?.estimatedSpans ?? 0) > 0} all={selectsAll(q)} />
          </section>
        </>}
      </div>
    </div>
  );
}

/** Keys that a control handles itself stay with it. */
function onControl(e: KeyboardEvent): boolean {
  return !!(e.target as Element | null)?.closest?.('button, a[href], summary, input, [role=checkbox]');
}

/** What links to traces need: the search, without a list of stored traces. */
function runOf(q: string, heat: Heatmap | null): Run {
  const from = heat ? millis(heat.start) : 0;
  const to = heat ? from + (heat.columns * heat.step) / 1e6 : 0;
  return { q, select: [], from, to, start: nanos(from), end: nanos(to) };
}

/** The connection in a few words; color is not the only sign. */
function State({ live, paused }: { live: LiveState; paused: boolean }) {
  const { connection, status } = live;
  const state = paused && connection.state === 'open' ? 'paused' : connection.state;
  const oneIn = status?.oneIn ?? 1;
  const shown = oneIn > 1 ? t('showing 1 in {n}', { n: count(oneIn) }) : t('showing all');
  const text = {
    open: t('Live, {share}', { share: shown }), paused: t('Paused, {share}', { share: shown }), connecting: t('Connecting'), waiting: t('Not connected'), failed: t('Not connected'),
    resting: t('Paused in the background'),
  }[state];
  useEffect(() => announce(text), [state]); // not each time the share changes
  return <span class={css.state} title={oneIn > 1 ? t('There are too many traces. The server chooses by trace ID.') : undefined}><i class={state === 'open' ? css.on : css.off} aria-hidden="true" />{text}</span>;
}

/** Traces in the window of the heatmap. */
function Totals({ heat }: { heat: Heatmap }) {
  const n = heat.estimatedSpans;
  return (
    <span class={css.totals}>
      {tn(n, '{n} trace in the last 5 min', '{n} traces in the last 5 min', { n: count(n) })}
      {heat.estimatedErrors > 0 && <a class={css.errors} href={link({ page: 'explore' }, { q: addCondition(view.value.q, 'error', '=', 'true'), live: true })}>{t('{n} with errors', { n: count(heat.estimatedErrors) })}</a>}
    </span>
  );
}

/** The worst incident that goes on, whatever is searched for. The page of the service says more. */
function OpenIncident() {
  const { data } = useRequest<Incidents>(capable('metrics') ? 'incidents' : null, (now) => rangeParams({ from: 'now-15m', to: 'now' }, now), { every: 30_000 });
  const source = data?.incidents[0]?.source;
  return source?.end === null ? <a class={css.errors} href={link({ page: 'service', name: source.name })}>{t('Incident in {service}', { service: source.name })}</a> : null;
}

function ListHead({ held, hold, paused, onShow }: { held: number; hold: { rows: boolean }; paused: boolean; onShow: () => void }) {
  const why = paused ? t('Paused.') : t('The list is paused while you look at it.');
  return (
    <div class={css.listHead}>
      <h2 class={css.title}>{t('Traces')}</h2>
      <span class={css.note}>{hold.rows ? why : t('Newest first. A trace appears when it has had no new span for a moment.')}</span>
      {held > 0 && <Button kind="quiet" icon="up" onClick={onShow}>{tn(held, 'Show {n} new trace', 'Show {n} new traces', { n: count(held) })}</Button>}
    </div>
  );
}

/** What the server did not show, and why. */
function LeftOut({ live: { status } }: { live: LiveState }) {
  if (!status) return null;
  const { evicted, tooLong, unread } = status.leftOut;
  const parts = [
    tooLong > 0 && tn(tooLong, '{n} trace is too large to show here.', '{n} traces are too large to show here.', { n: count(tooLong) }),
    unread > 0 && tn(unread, '{n} trace could not be read.', '{n} traces could not be read.', { n: count(unread) }),
    evicted > 0 && tn(evicted, '{n} trace is missing because too many are open at the same time.', '{n} traces are missing because too many are open at the same time.', { n: count(evicted) }),
    status.missed > 0 && tn(status.missed, '{n} span was not examined, because there are too many.', '{n} spans were not examined, because there are too many.', { n: count(status.missed) }),
  ].filter(Boolean);
  return parts.length > 0 ? <div class={page.notice}><Partial>{parts.join(' ')}</Partial></div> : null;
}

/** Shows the selected time and durations as a search of stored traces. */
function select(box: Box | null, heat: Heatmap): void {
  if (!box) return;
  const from = millis(heat.start);
  navigate({ live: false, sel: box, of: 'traces', range: { from: iso(from), to: iso(from + (heat.columns * heat.step) / 1e6) } });
}

/** "POST /checkout, 1.63 s". */
function exampleText(heat: Heatmap, cell: Box): string {
  const e = slowestExemplar(heat, cell);
  return e ? `${e.name || e.service}, ${duration(e.duration)}` : '';
}

function openSlowest(heat: Heatmap, cell: Box, q: string): void {
  const found = slowestExemplar(heat, cell);
  if (found) navigate(linked({ page: 'trace', id: found.trace }, { search: markedSearch(q) }));
  else toast(t('No example of this cell was received. Drag over it to search the stored traces.'));
}

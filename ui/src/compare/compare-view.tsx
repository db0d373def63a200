import { useEffect } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import { ApiError } from '../api/client';
import { Check, Segmented, TabPanel, Tabs } from '../shell/controls';
import { count } from '../shell/format';
import { announce } from '../shell/live-region';
import { lazy } from '../shell/lazy';
import { Empty, Failure, Partial, Progress, Skeleton } from '../shell/states';
import { t, Text } from '../shell/text';
import { useTitle } from '../shell/title';
import { link, navigate, view } from '../shell/url';
import { AttributesTable, useAttributes } from './attributes-table';
import { Head, type Places } from './head';
import { CompareTable, useRows } from './table';
import { baseline, usePair, type Obstacle, type Pair, type SourceOf } from './use-pair';
import css from './compare.module.css';

const Timelines = lazy(() => import('./timelines'));

/** Compares two traces, of which B may be `baseline`. */
export default function CompareView({ a, b, sourceOf, places }: { a: string; b: string; sourceOf?: SourceOf; places: Places }) {
  const { pair, obstacle, retry } = usePair(a, b, sourceOf);
  useTitle(t('Compare'));
  if (pair) return <Loaded pair={pair} places={places} />;
  if (obstacle) return <Message><Why obstacle={obstacle} a={a} places={places} retry={retry} /></Message>;
  return <><Progress active label={b === baseline ? t('Looking for a typical trace') : t('Loading the traces')} /><Message><Skeleton rows={12} /></Message></>;
}

function Message({ children }: { children: ComponentChildren }) {
  return <div class={css.message}><h1 class="visually-hidden">{t('Compare')}</h1>{children}</div>;
}

/** Why there is nothing to compare, and what to do. */
function Why({ obstacle: o, a, places, retry }: { obstacle: Obstacle; a: string; places: Places; retry: () => void }) {
  const search = places.typical ? <a href={link({ page: 'explore' })}>{t('Search for traces')}</a> : <a href={link({ page: 'open' })}>{t('Traces of the open files')}</a>;
  if (o.kind === 'same') {
    return (
      <Empty title={t('Both are the same trace.')}>
        {places.typical && <a href={link(places.pair(a, baseline))}>{t('Compare with a typical trace')}</a>}
        <a href={link(places.trace(a))}>{t('Open the trace')}</a>{search}
      </Empty>
    );
  }
  if (o.kind === 'alone') {
    return (
      <Empty title={<Text of="No other trace starts with {operation}." operation={<b>{o.typical.service} {o.typical.name}</b>} />}>
        <p class={css.why}>{t('A typical trace has the same root, and is from the day before the trace or the hour after it.')}</p>
        <a href={link(places.trace(a))}>{t('Open the trace')}</a>{search}
      </Empty>
    );
  }
  if (o.kind === 'missing' && isMissing(o.error)) {
    return (
      <Empty title={o.side === 'a' ? <Text of="Trace A, {id}, was not found." id={<code>{o.id}</code>} /> : <Text of="Trace B, {id}, was not found." id={<code>{o.id}</code>} />}>
        <p class={css.why}>{places.typical ? t('It may be older than the retention, or it was not sampled.') : t('It is not in an open file. Files are not kept when the page is reloaded: open the file again.')}</p>
        {o.side === 'b' && <a href={link(places.trace(a))}>{t('Open trace A')}</a>}{search}
      </Empty>
    );
  }
  const what = o.kind === 'missing' ? (o.side === 'a' ? t('Trace A cannot be loaded') : t('Trace B cannot be loaded')) : o.what === 'typical' ? t('A typical trace cannot be found') : t('The traces cannot be compared');
  return <Failure what={what} error={o.error} retry={retry} />;
}

function isMissing(error: Error): boolean {
  return error instanceof ApiError ? error.status === 404 : error.message === 'trace not found';
}

function Loaded({ pair, places }: { pair: Pair; places: Places }) {
  const { all, sort, tab } = view.value;
  const rows = useRows(pair);
  const attributes = useAttributes(pair);
  const selected = tab === 'attributes' || tab === 'timelines' ? tab : 'difference';
  const { rows: total, common } = pair.comparison;
  const shown = t('{shown} of {total} rows', { shown: count(rows.length), total: count(total) });
  useEffect(() => announce(shown), [shown]);
  return (
    <div class={css.page}>
      <Head pair={pair} places={places} />
      {!common && <div class={css.notice}><Partial>{t('The traces start with different operations. No call path is in both, so each row is only in A or only in B.')}</Partial></div>}
      {pair.typical && !pair.typical.same && <div class={css.notice}><Partial>{t('A\'s operations are unusual: less than 5 % of the traces with this root have the same operations. B is typical of the traces with the most similar operations.')}</Partial></div>}
      <div class={css.tabs}><Tabs
        label={t('Views of the comparison')} name="compare" selected={selected} onSelect={(id) => navigate({ tab: id === 'difference' ? '' : id }, { replace: true })}
        tabs={[{ id: 'difference', label: t('Difference') }, { id: 'timelines', label: t('Timelines') }, { id: 'attributes', label: t('Attributes'), count: attributes.list ? count(attributes.list.length) : undefined }]}
        end={selected === 'difference' && <>
          <Check checked={!all} onChange={(checked) => navigate({ all: !checked }, { replace: true })}>{t('Only what changed')} <span class={css.rest}>({shown})</span></Check>
          <Segmented
            label={t('Order')} value={sort === 'largest' ? 'largest' : 'path'} onChange={(value) => navigate({ sort: value === 'largest' ? value : '' }, { replace: true })}
            segments={[{ value: 'path', label: t('Call path') }, { value: 'largest', label: t('Largest first'), title: t('By the difference that originates in the row: its self time, and calls and errors found in only one trace') }]}
          />
        </>}
      /></div>
      <TabPanel name="compare" selected={selected} class={css.panel}>
        {selected === 'timelines' ? <Timelines pair={pair} places={places} /> : selected === 'attributes' ? <AttributesTable pair={pair} attributes={attributes} /> : <CompareTable key={`${sort} ${all}`} pair={pair} places={places} rows={rows} />}
      </TabPanel>
    </div>
  );
}

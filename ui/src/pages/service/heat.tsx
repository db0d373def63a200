import { useState } from 'preact/hooks';
import type { Heatmap, Nanos } from '../../api/types';
import { slowestExemplar } from '../../charts/exemplar';
import { HeatmapChart } from '../../charts/heatmap';
import { Button } from '../../shell/controls';
import { duration, iso, millis, percent } from '../../shell/format';
import { lazy } from '../../shell/lazy';
import { AnswerState, Messages, Partial } from '../../shell/states';
import { t } from '../../shell/text';
import { linked, navigate, type Box } from '../../shell/url';
import { useRequest } from '../../shell/use-request';
import { operationQuery } from './queries';
import css from './service.module.css';

const HeatmapTable = lazy<{ data: Heatmap }>(() => import('../../charts/heatmap-table'));

const columns = 120;
const exemplars = 300;

/** All durations of one operation. A box continues on Explore, a click opens an example. */
export function OperationHeat({ service, operation, start, end }: { service: string; operation: string; start: Nanos; end: Nanos }) {
  const [table, setTable] = useState(false);
  const q = operationQuery(service, operation);
  const answer = useRequest<Heatmap>('heatmap', { q, start, end, of: 'spans', columns, exemplars }, { maxAge: 60_000 });
  const { data, error, messages } = answer;
  const explain = (box: Box | null): void => {
    if (box) navigate(linked({ page: 'explore' }, { q, of: 'spans', sel: box, tab: 'explain', range: { from: iso(millis(start)), to: iso(millis(end)) } }));
  };
  const open = (cell: Box): void => {
    const found = data && slowestExemplar(data, cell);
    if (found) navigate(linked({ page: 'trace', id: found.trace }, { span: found.span }));
    else explain(cell);
  };
  return (
    <section class={css.heat} aria-label={t('Durations of {name}', { name: operation })}>
      <div class={css.heatHead}><h2>{t('{name}, all durations', { name: operation || t('(no name)') })}</h2><span class={css.second}>{t('drag to explain a part')}</span><span class={css.grow} /><Button kind="quiet" aria-pressed={table} onClick={() => setTable(!table)}>{t('Table view')}</Button></div>
      {error && <AnswerState what={t('Durations')} answer={answer} />}
      {data && data.share < 1 && <Partial>{t('The colors show a sample: {share} of the spans were examined.', { share: percent(data.share) })}</Partial>}
      <Messages messages={messages} />
      {data && table && <HeatmapTable data={data} />}
      {data && !table && <div class={css.heatBox}><HeatmapChart data={data} box={null} marks={[]} onBox={explain} onOpen={open} example={(cell) => exampleText(data, cell)} /></div>}
      {!data && !error && <div class={css.blank} />}
    </section>
  );
}

function exampleText(data: Heatmap, cell: Box): string {
  const e = slowestExemplar(data, cell);
  return e ? duration(e.duration) : '';
}

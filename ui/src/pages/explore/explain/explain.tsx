import { useEffect, useState } from 'preact/hooks';
import type { Explanation } from '../../../api/explain';
import { spansOf } from '../../../query/edit';
import { withSet } from '../../../query/sets';
import { Button } from '../../../shell/controls';
import { count, iso } from '../../../shell/format';
import { announce } from '../../../shell/live-region';
import { chartsOf, ShareMenu, textOf, type Finding } from '../../../shell/share';
import { AnswerState, Empty, Messages, Progress } from '../../../shell/states';
import { t, tn } from '../../../shell/text';
import { format, link, navigate, view } from '../../../shell/url';
import { useRequest } from '../../../shell/use-request';
import type { Run } from '../run';
import type { TabProps } from '../tabs';
import { Attributes } from './attributes';
import { explainErrors, explainSlowest } from './choice';
import { Icicle } from './icicle';
import { ShapeList, TimeList } from './lists';
import { explainParams } from './selection';
import { Facts, Sentence } from './sentence';
import { Values } from './values';
import css from './explain.module.css';

/** How the selected traces differ from the others: attributes, time and shape. */
export default function ExplainTab({ run }: TabProps) {
  const params = explainParams(run, view.value);
  const answer = useRequest<Explanation>(params ? 'explain' : null, params ?? {}, { maxAge: 300_000 });
  const { data, loading } = answer;
  useEffect(() => { if (data && !loading) announce(announcementOf(data)); }, [data, loading]);
  if (!params) return <Unselected />;
  return (
    <div class={css.tab} data-explained>
      <Progress active={loading} label={t('Comparing traces')} />
      <AnswerState what={t('Explanation')} answer={answer} class={css.notice} rows={8} />
      {data && <Lists key={answer.at} data={data} run={run} messages={answer.messages} />}
    </div>
  );
}

/** Nothing is selected yet. */
function Unselected() {
  return (
    <div class={css.notice}>
      <Empty title={t('Select what to explain: drag a box on the heatmap.')}>
        <Button onClick={explainErrors}>{t('Explain errors')}</Button>
        <Button onClick={explainSlowest}>{t('Explain slowest 5 %')}</Button>
        <span>{t('With the keyboard: focus the heatmap, then press Shift and the arrow keys.')}</span>
      </Empty>
    </div>
  );
}

function Lists({ data, run, messages }: { data: Explanation; run: Run; messages: Parameters<typeof Messages>[0]['messages'] }) {
  const [line, setLine] = useState(0);
  const [path, setPath] = useState(data.time.lines[0]?.path ?? -1);
  const few = Math.min(data.selected.traces, data.rest.traces) < data.minTraces;
  const traces = (filter: string): string => link({ page: 'explore' }, { q: withSet(run.q, filter) });
  const ofPath = (i: number): string => traces(spansOf({ service: data.paths.service[i], name: data.paths.name[i] }));
  return (
    <>
      <div class={css.lead}>
        {!few && <div class={css.share} data-unshared><ShareMenu finding={() => finding(run)} /></div>}
        {few ? <TooFew data={data} /> : <><Sentence data={data} /><Facts data={data} /></>}
        <Messages messages={messages} />
      </div>
      <div class={css.columns}>
        {!few && (
          <div class={css.left}>
            <Attributes data={data} run={run} chosen={line} onChoose={setLine} />
            {data.attributes.lines[line] && <Values line={data.attributes.lines[line]} />}
          </div>
        )}
        {(!few || data.paths.parent.length > 0) && (
          <div class={css.right}>
            <Icicle data={data} path={path} onPath={setPath} href={ofPath} />
            {!few && <>
              <TimeList data={data} path={path} onPath={setPath} href={traces} />
              <ShapeList data={data} path={path} onPath={setPath} href={traces} />
            </>}
          </div>
        )}
      </div>
    </>
  );
}

/** The sentence, the heatmap, and the lists below it. */
function finding(run: Run): Finding {
  const tab = document.querySelector<HTMLElement>('#main [data-explained]')!;
  return { sentence: textOf(tab.querySelector('h2')), href: format({ ...view.value, range: { from: iso(run.from), to: iso(run.to) } }), parts: [...chartsOf(), tab] };
}

/** A side has too few traces: which one, and what helps. */
function TooFew({ data }: { data: Explanation }) {
  const { selected, rest, minTraces } = data;
  const { base } = view.value;
  const chosen = selected.traces < minTraces;
  const n = chosen ? selected.traces : rest.traces;
  const title = chosen
    ? tn(n, '{n} selected trace is too few: at least {least} are needed on each side.', '{n} selected traces are too few: at least {least} are needed on each side.', { n: count(n), least: minTraces })
    : tn(n, '{n} other trace is too few: at least {least} are needed on each side.', '{n} other traces are too few: at least {least} are needed on each side.', { n: count(n), least: minTraces });
  return (
    <Empty title={title}>
      {chosen && <Button onClick={() => navigate({ range: { from: 'now-24h', to: 'now' }, sel: null })}>{t('Last 24 hours')}</Button>}
      {!chosen && base && <Button onClick={() => navigate({ base: '' })}>{t('Compare with all others')}</Button>}
      <Button onClick={() => navigate({ sel: null })}>{t('Clear the selection')}</Button>
    </Empty>
  );
}

function announcementOf(data: Explanation): string {
  const n = [data.attributes.lines, data.time.lines, data.shape.lines].map((l) => count(l.length));
  return t('{attributes} attributes, {operations} operations and {paths} call paths differ', { attributes: n[0], operations: n[1], paths: n[2] });
}

import type { ComponentChildren } from 'preact';
import type { CountedText, ErrorGroup, Errors } from '../api/errors';
import type { Facets, SpanDetails } from '../api/types';
import type { Run } from '../pages/explore/run';
import { addCondition } from '../query/edit';
import { fieldLabel } from '../query/field';
import { count, percent } from '../shell/format';
import { AnswerState } from '../shell/states';
import { t, tn } from '../shell/text';
import { Time } from '../shell/time';
import { link } from '../shell/url';
import { useRequest } from '../shell/use-request';
import { Exception } from '../trace/detail/exception';
import { apartOf, comparedWith } from './apart';
import css from './errors.module.css';

/** The details of a group: an example with its stack trace, and what its spans have in common. */
export function GroupDetail({ g, data, run }: { g: ErrorGroup; data: Errors; run: Run }) {
  const q = `{ ${g.where} }`;
  const compared = comparedWith(g);
  return (
    <div class={css.detail}>
      <div class={css.links}>
        <a href={link({ page: 'explore' }, { q })}>{t('Traces with this error')}</a>
        <a href={link({ page: 'trace', id: g.traceID }, { span: g.spanID, search: q })}>{t('Newest example')}</a>
      </div>
      <div class={css.parts}>
        <div class={css.example}>
          <h2>{t('Newest example')}</h2>
          <Example g={g} />
        </div>
        <div>
          <dl class={css.facts}>
            <Fact name={t('First seen')}><Time at={g.first} precision={1} withAge /></Fact>
            <Fact name={t('Last seen')}><Time at={g.last} precision={1} withAge /></Fact>
            {data.before && <Fact name={t('Time before')}>{beforeText(g, data)}</Fact>}
            {g.days && <Fact name={t('Same time on previous days')}>{g.days.map(count).join(' · ')}</Fact>}
            {g.frame && <Fact name={t('Top frame')}><code>{g.frame}</code></Fact>}
            {g.pattern && g.pattern !== g.message && <Fact name={t('Message')}><code>{g.pattern}</code></Fact>}
          </dl>
          <Counted title={t('Operations')} list={g.operations} total={g.count} other={g.otherOperations} href={(text) => link({ page: 'explore' }, { q: addCondition(q, 'name', '=', text) })} />
          {g.versions.length > 0 && <Counted title={t('Versions')} list={g.versions} total={g.count} other={0} href={(text) => link({ page: 'explore' }, { q: addCondition(q, 'resource.service.version', '=', text) })} />}
          <SetApart q={q} compared={compared} run={run} />
        </div>
      </div>
    </div>
  );
}

/** How often the group occurred in the time before. */
function beforeText(g: ErrorGroup, data: Errors): string {
  if (g.before) return tn(g.before, '{n} span', '{n} spans', { n: count(g.before) });
  if (!data.before!.complete) return t('not among the spans that were counted');
  return data.before!.spans === 0 ? t('no span failed') : t('not seen');
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return <><dt>{name}</dt><dd>{children}</dd></>;
}

/** Type, message and stack trace of the newest span, or its status. */
function Example({ g }: { g: ErrorGroup }) {
  const answer = useRequest<SpanDetails>(`outline/${g.traceID}/spans`, { ids: g.spanID }, { maxAge: 300_000 });
  const { data } = answer;
  if (!data) return <AnswerState what={t('The example')} answer={answer} rows={4} />;
  const span = data.spans.find((s) => s.spanID === g.spanID);
  const exception = span?.events.filter((e) => e.name === 'exception').at(-1);
  if (exception) return <Exception attributes={exception.attributes} />;
  return <p class={css.status}>{span?.statusMessage || g.message || t('The span has neither an exception nor a status message.')}</p>;
}

function Counted({ title, list, total, other, href }: { title: string; list: CountedText[]; total: number; other: number; href: (text: string) => string }) {
  return (
    <section class={css.counted}>
      <h2>{title}</h2>
      <ul>
        {list.map((c) => <li key={c.text}><a href={href(c.text)} title={c.text}>{c.text || t('(empty)')}</a><span>{count(c.count)}</span><i class={css.track} aria-hidden="true"><i style={{ width: `${(c.count / total) * 100}%` }} /></i></li>)}
        {other > 0 && <li><span>{t('others')}</span><span>{count(other)}</span></li>}
      </ul>
    </section>
  );
}

/** Values that the failed spans have more often than other spans of the same operations. */
function SetApart({ q, compared, run }: { q: string; compared: string; run: Run }) {
  const answer = useRequest<Facets>('compare', { q: compared, sel_q: q, start: run.start, end: run.end, values: 3 }, { maxAge: 300_000 });
  const found = answer.data && apartOf(answer.data);
  return (
    <section class={css.counted}>
      <h2>{t('What sets these spans apart')}</h2>
      <AnswerState what={t('Comparison')} answer={answer} rows={2} />
      {found === null && <p class={css.none}>{t('There are too few spans of these operations with or without the error to compare them.')}</p>}
      {found?.length === 0 && <p class={css.none}>{t('No attribute is much more frequent than on other spans of the same operations.')}</p>}
      <ul>
        {found?.map((a) => (
          <li key={a.field}>
            <a href={link({ page: 'explore' }, { q: addCondition(q, a.field, '=', a.value) })} title={a.value}><b>{fieldLabel(a.field)}</b> = {a.value || t('(empty)')}</a>
            <span>{t('{failed}, others {others}', { failed: percent(a.failed), others: percent(a.others) })}</span>
            <i class={css.track} aria-hidden="true"><i class={css.failed} style={{ width: `${a.failed * 100}%` }} /></i>
            <i class={css.track} aria-hidden="true"><i style={{ width: `${a.others * 100}%` }} /></i>
          </li>
        ))}
      </ul>
      <a class={css.explain} href={link({ page: 'explore' }, { q: compared, tab: 'explain', of: 'spans', sel: 'errors' })}>{t('Explain the errors of these operations')}</a>
    </section>
  );
}

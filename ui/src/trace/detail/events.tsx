import type { SpanDetail } from '../../api/types';
import { config } from '../../shell/config';
import { Button } from '../../shell/controls';
import { duration, shortID } from '../../shell/format';
import { t, Text } from '../../shell/text';
import { copy } from '../../shell/toast';
import { link } from '../../shell/url';
import { findSpan } from '../model/span';
import { goTo } from '../moves';
import type { TraceState } from '../state';
import { AttributeList, SearchActions } from './attributes';
import { Exception } from './exception';
import code from './code.module.css';
import css from './detail.module.css';

/** Whether an event reports an exception. */
export function isException(event: SpanDetail['events'][number]): boolean {
  return event.name === 'exception' || event.attributes.some((a) => a.key === 'exception.type' || a.key === 'exception.stacktrace');
}

/** Events of a span in order of time. */
export function Events({ state, detail }: { state: TraceState; detail: SpanDetail }) {
  if (detail.events.length === 0) return <p class={css.nothing}>{t('No events')}</p>;
  return (
    <ol class={css.entries}>
      {detail.events.map((event, i) => {
        const exception = isException(event);
        const rest = exception ? event.attributes.filter((a) => !/^exception\.(type|message|stacktrace)$/.test(a.key)) : event.attributes;
        return (
          <li key={i}>
            <h3 class={css.entry}><span class={exception ? css.diamondError : css.diamond} aria-hidden="true" /><span class={css.grow}>{event.name}</span>{state.source.kind === 'server' && <span class={css.entryActions}><SearchActions field={{ field: 'event:name', value: event.name }} name={t('event name')} detail={detail} /></span>}<span class={css.offset}>{offset(event.time, detail.start)}</span></h3>
            {exception && <Exception attributes={event.attributes} />}
            {rest.length > 0 && <AttributeList state={state} detail={detail} scope="event" attributes={rest} />}
          </li>
        );
      })}
    </ol>
  );
}

function offset(time: string, start: string): string {
  const ns = Number(BigInt(time || '0') - BigInt(start || '0'));
  return `${ns < 0 ? '' : '+'}${duration(ns)}`;
}

/** Links of a span, and spans of this trace that link to it. */
export function Links({ state, detail }: { state: TraceState; detail: SpanDetail }) {
  if (detail.links.length === 0 && detail.linkedFrom.length === 0) return <><p class={css.nothing}>{t('No links to other spans')}</p><NoTemplates state={state} /></>;
  return (
    <>
      {detail.links.length > 0 && <h3 class={css.group}>{t('Links to')}</h3>}
      <ul class={css.entries}>
        {detail.links.map((l, i) => (
          <li key={i}>
            <SpanLink state={state} traceID={l.traceID} spanID={l.spanID} />
            {l.attributes.length > 0 && <AttributeList state={state} detail={detail} scope="link" attributes={l.attributes} />}
          </li>
        ))}
      </ul>
      {detail.linkedFrom.length > 0 && <h3 class={css.group}>{t('Linked from')}</h3>}
      <ul class={css.entries}>
        {detail.linkedFrom.map((l) => <li key={l.spanID}><SpanLink state={state} traceID={state.model.value.traceID} spanID={l.spanID} text={`${l.service} ${l.name}`} /></li>)}
      </ul>
    </>
  );
}

const example = `extensions:
  query:
    links:
      - loki: https://grafana.example.com`;

/** What to write so that spans link to other systems, while no such link is configured. */
function NoTemplates({ state }: { state: TraceState }) {
  if (state.source.kind !== 'server' || !config.value || (config.value.links?.length ?? 0) > 0) return null;
  return (
    <>
      <h3 class={css.group}>{t('Links to logs, dashboards or tickets')}</h3>
      <p class={css.nothing}><Text of="The server links to no other system. Add one to its configuration, for example logs in Loki; {more} lists others and describes templates." more={<a href="docs/link-templates.html" target="_blank" rel="noopener">{t('Links to other systems')}</a>} /></p>
      <div class={code.code}><pre tabIndex={0} role="region" aria-label={t('Example of a link')}>{example}</pre></div>
      <Button icon="copy" onClick={() => void copy(example, t('Example'))}>{t('Copy the example')}</Button>
    </>
  );
}

/** Goes to a span of this trace, or to another trace. */
function SpanLink({ state, traceID, spanID, text }: { state: TraceState; traceID: string; spanID: string; text?: string }) {
  const model = state.model.value;
  const own = traceID.replace(/^0+/, '') === model.traceID.replace(/^0+/, '');
  const span = own ? findSpan(model, spanID) : -1;
  if (span >= 0) {
    const go = (): void => {
      goTo(state, span);
      state.open(span);
    };
    return <button type="button" class={css.spanLink} onClick={go}>{text ?? `${model.services[model.service[span]]} ${model.names[model.name[span]]}`}</button>;
  }
  if (own) return <span>{t('{text}, which is not in this trace', { text: text ?? t('span {spanID}', { spanID }) })}</span>;
  return <a class={css.spanLink} href={link({ page: state.source.kind === 'file' ? 'open' : 'trace', id: traceID }, { span: spanID })}><Text of="span {spanID} of trace {traceID}" spanID={<code>{shortID(spanID)}</code>} traceID={<code>{shortID(traceID)}</code>} /></a>;
}

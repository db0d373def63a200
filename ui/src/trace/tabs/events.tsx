import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { SpanDetail } from '../../api/types';
import { Check } from '../../shell/controls';
import { count, duration } from '../../shell/format';
import { Name } from '../../shell/name';
import { ServiceMark } from '../../shell/service-mark';
import { t, tn } from '../../shell/text';
import { navigate, view } from '../../shell/url';
import { terms } from '../model/find';
import { sortedBy } from '../model/grouping';
import { operation, serviceName, shownService, spanID } from '../model/span';
import type { TraceModel } from '../model/types';
import { setCursor } from '../moves';
import type { TraceState } from '../state';
import { Grid, type Column } from './grid';
import { openSpan, useShown } from './shown';
import type { TabProps } from './tabs';
import css from './tools.module.css';

/** Spans whose events are loaded in full: for their attributes. The others show what the outline has. */
const maxLoaded = 2000;
const batch = 100;

/** Event of a span: `event` is its index in the columns of the model. */
interface Item {
  span: number;
  event: number;
}

/** All events of the trace in the order of time. What is written in the find box limits them. */
export default function Events({ state }: TabProps) {
  const model = state.model.value;
  const [exceptions, setExceptions] = useState(false);
  const items = useItems(state);
  const texts = useTexts(state, items);
  const words = useMemo(() => terms(view.value.find.trim()), [view.value.find]);
  const down = view.value.sort === '-at';
  const shown = useMemo(() => {
    const list = items.filter(({ span, event }) => (!exceptions || model.eventException[event] === 1) && contains(model, span, event, texts.byEvent.get(event) ?? '', words));
    return down ? list.reverse() : list;
  }, [items, texts, words, exceptions, down]);
  const [row, setRow] = useState(-1);
  const active = row >= 0 ? Math.min(row, shown.length - 1) : shown.findIndex((i) => i.span === state.active.value);
  return (
    <>
      <div class={css.bar}>
        <span class={css.count}>{shown.length === items.length ? tn(items.length, '{n} event', '{n} events', { n: count(items.length) }) : t('{n} of {all} events', { n: count(shown.length), all: count(items.length) })}</span>
        <Check checked={exceptions} onChange={setExceptions}>{t('only exceptions')}</Check>
        {words.length > 0 && <span class={css.note}>{t('with the words of the find box')}</span>}
        {texts.missing > 0 && <span class={css.note} role="status">{texts.message || tn(texts.missing, 'attributes of {n} span are not loaded', 'attributes of {n} spans are not loaded', { n: count(texts.missing) })}</span>}
      </div>
      <Grid
        label={t('Events')} columns={columns()} count={shown.length} sort={down ? '-at' : 'at'} onSort={(sort) => navigate({ sort: sort === '-at' ? sort : '' }, { replace: true })}
        active={active} onActive={(i) => { setRow(i); setCursor(state, shown[i].span); }} onOpen={(i) => openSpan(state, shown[i].span)}
        stateOf={(i) => ({ selected: shown[i].span === state.selected.value })} cells={(i) => cells(state, model, shown[i], texts.byEvent.get(shown[i].event) ?? '')}
        empty={items.length === 0 ? t('The spans of this trace have no events.') : t('No event contains these words.')}
      />
    </>
  );
}

function columns(): Column[] {
  return [
    { id: 'at', label: t('Time'), width: '68px', number: true, main: true },
    { id: 'event', label: t('Event'), width: 'minmax(80px, .6fr)', main: true, fixed: true },
    { id: 'span', label: t('Service and operation'), width: 'minmax(120px, 1.2fr)', main: true, fixed: true },
    { id: 'text', label: t('Attributes'), width: 'minmax(120px, 2fr)', fixed: true },
    { id: 'jump', label: t('Go to'), width: '72px', fixed: true },
  ];
}

/** Events of the shown spans by time. */
function useItems(state: TraceState): Item[] {
  const model = state.model.value;
  const spans = useShown(state);
  return useMemo(() => {
    const list: Item[] = [];
    for (const span of spans) for (let event = model.eventFirst[span]; event < model.eventFirst[span + 1]; event++) list.push({ span, event });
    return [...sortedBy(Int32Array.from(list, (_, i) => i), (i) => timeOf(model, list[i]), false)].map((i) => list[i]);
  }, [model, spans]);
}

function timeOf(m: TraceModel, { span, event }: Item): number {
  return m.start[span] + m.eventTime[event];
}

interface Texts {
  /** `key=value` of the attributes, by event. */
  byEvent: ReadonlyMap<number, string>;
  /** Number of spans whose attributes are not loaded, and why. */
  missing: number;
  message: string;
}

/** Attributes of the events, loaded in the background in the order of the list. */
function useTexts(state: TraceState, items: Item[]): Texts {
  const model = state.model.value;
  const [texts, setTexts] = useState<Texts>({ byEvent: new Map(), missing: 0, message: '' });
  useEffect(() => {
    const abort = new AbortController();
    const spans = [...new Set(items.map((i) => i.span))];
    const byEvent = new Map<number, string>();
    async function load(): Promise<void> {
      setTexts({ byEvent, missing: spans.length, message: '' });
      for (let i = 0; i < Math.min(spans.length, maxLoaded); i += batch) {
        const part = spans.slice(i, Math.min(i + batch, maxLoaded));
        const details = await state.source.details([...new Set(part.map((s) => spanID(model, s)))], abort.signal);
        if (abort.signal.aborted) return;
        const byID = new Map(details.map((d) => [`${d.spanID} ${d.service}`, d]));
        for (const span of part) addTexts(model, span, byID.get(`${spanID(model, span)} ${model.services[model.service[span]]}`), byEvent);
        setTexts({ byEvent: new Map(byEvent), missing: spans.length - Math.min(spans.length, i + part.length), message: '' });
      }
    }
    load().catch((e: unknown) => {
      if (!abort.signal.aborted) setTexts({ byEvent, missing: spans.length, message: t('Attributes are not loaded: {reason}', { reason: e instanceof Error ? e.message : String(e) }) });
    });
    return () => abort.abort();
  }, [state, items]);
  return texts;
}

/** Both lists of events are in the order of time. */
function addTexts(m: TraceModel, span: number, detail: SpanDetail | undefined, into: Map<number, string>): void {
  const events = [...(detail?.events ?? [])].sort((a, b) => (BigInt(a.time || '0') < BigInt(b.time || '0') ? -1 : BigInt(a.time || '0') > BigInt(b.time || '0') ? 1 : 0));
  for (let e = m.eventFirst[span]; e < m.eventFirst[span + 1]; e++) {
    const at = events.findIndex((event) => event.name === m.names[m.eventName[e]]);
    if (at < 0) continue;
    const [event] = events.splice(at, 1);
    into.set(e, textOf(event.attributes));
  }
}

/** What an exception says first, then `key=value`. */
function textOf(attributes: SpanDetail['attributes']): string {
  const value = (key: string): string => attributes.find((a) => a.key === key)?.value ?? '';
  const exception = [value('exception.type'), value('exception.message')].filter(Boolean).join(': ');
  const others = attributes.filter((a) => !a.key.startsWith('exception.')).map((a) => `${a.key}=${a.value.slice(0, 200)}`);
  return [exception, ...others].filter(Boolean).join('  ');
}

function contains(m: TraceModel, span: number, event: number, text: string, words: string[]): boolean {
  if (words.length === 0) return true;
  const all = [m.names[m.eventName[event]], operation(m, span), serviceName(m, shownService(m, span)), text].join('\n').toLowerCase();
  return words.every((word) => all.includes(word));
}

function cells(state: TraceState, m: TraceModel, item: Item, text: string): Record<string, ComponentChildren> {
  const { span, event } = item;
  const name = m.names[m.eventName[event]];
  const jump = (): void => {
    setCursor(state, span);
    state.open(span);
    navigate({ tab: '' });
    state.show(span, false);
  };
  return {
    at: `+${duration(timeOf(m, item))}`,
    event: <><span class={m.eventException[event] ? css.exception : css.diamond} aria-hidden="true" /><Name class={m.eventException[event] ? css.error : css.strong} text={name} cut={state.cut(name)} /></>,
    span: <><ServiceMark name={serviceName(m, shownService(m, span))} inferred={m.peer[span] >= 0} /><Name text={operation(m, span)} cut={state.cut(operation(m, span))} /></>,
    text: <span class={css.mono} title={text}>{text}</span>,
    jump: <button type="button" class={css.jump} tabIndex={-1} onClick={jump}>{t('Timeline')}</button>,
  };
}

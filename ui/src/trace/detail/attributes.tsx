import { useState } from 'preact/hooks';
import type { Attribute, SpanDetail } from '../../api/types';
import { spansOf, spansWith, spansWithout, type FieldValue } from '../../query/edit';
import { attribute } from '../../query/field';
import { config } from '../../shell/config';
import { Button, Input } from '../../shell/controls';
import { ExternalLinks } from '../../shell/external-links';
import { Icon, type IconName } from '../../shell/icons';
import { linksFor, subjectOf } from '../../shell/link-templates';
import { t } from '../../shell/text';
import { iso, millis } from '../../shell/format';
import { copy } from '../../shell/toast';
import { defaultRange, format, linked, type View } from '../../shell/url';
import { togglePin } from '../moves';
import type { TraceState } from '../state';
import { useRested } from '../when-idle';
import { Code, LongText } from './code';
import { linkOf, type AttributeScope } from './conditions';
import { prettyJSON, prettySQL } from './pretty';
import css from './detail.module.css';

/** Attributes of one place: span, resource, scope, event or link. */
export interface AttributeGroup {
  title: string;
  scope: AttributeScope;
  attributes: Attribute[];
}

/** Attributes in groups, with a box that filters them if there are many. */
export function Attributes({ state, detail, groups }: { state: TraceState; detail: SpanDetail; groups: AttributeGroup[] }) {
  const [filter, setFilter] = useState('');
  const all = groups.reduce((n, g) => n + g.attributes.length, 0);
  const wanted = filter.trim().toLowerCase();
  const matches = (a: Attribute): boolean => wanted === '' || a.key.toLowerCase().includes(wanted) || a.value.toLowerCase().includes(wanted);
  const shown = groups.map((g) => ({ ...g, attributes: g.attributes.filter(matches) })).filter((g) => g.attributes.length > 0);
  return (
    <>
      {all > 6 && <Input class={css.filter} icon="search" type="search" aria-label={t('Filter attributes')} placeholder={t('Filter {all} attributes', { all })} value={filter} onInput={(e) => setFilter((e.currentTarget as HTMLInputElement).value)} />}
      {shown.map((g) => (
        <section key={g.title}>
          {groups.length > 1 && <h3 class={css.group}>{g.title}</h3>}
          <AttributeList state={state} detail={detail} scope={g.scope} attributes={g.attributes} />
        </section>
      ))}
      {all === 0 && <p class={css.nothing}>{t('No attributes')}</p>}
      {all > 0 && shown.length === 0 && <p class={css.nothing}>{t('No attribute contains “{filter}”', { filter })}</p>}
    </>
  );
}

/** Keys and values. Their actions, which are most of the elements and not visible yet, follow when the page is at rest. */
export function AttributeList({ state, detail, scope, attributes }: { state: TraceState; detail: SpanDetail; scope: AttributeScope; attributes: Attribute[] }) {
  const rested = useRested();
  return <dl class={css.list}>{attributes.map((a, i) => <Item key={`${a.key} ${i}`} state={state} detail={detail} scope={scope} attribute={a} actions={rested} />)}</dl>;
}

interface ItemProps {
  state: TraceState;
  detail: SpanDetail;
  scope: AttributeScope;
  attribute: Attribute;
}

function Item({ actions, ...props }: ItemProps & { actions: boolean }) {
  const a = props.attribute;
  const code = a.type === 'array' || a.type === 'kvlist' || a.type === 'string' ? prettyJSON(a.value) ?? prettySQL(a.value) : null;
  const small = code === null || a.value.length < 28;
  return (
    <div class={small ? css.item : css.wideItem}>
      <dt title={a.key}><span>{'\u200e' + a.key}</span></dt>
      <dd>{small ? <Value attribute={a} /> : <Code tokens={code} label={a.key} />}<AttributeLinks {...props} />{actions && <ItemActions {...props} />}</dd>
    </div>
  );
}

function Value({ attribute: a }: { attribute: Attribute }) {
  const address = a.type === 'string' ? linkOf(a.value) : '';
  if (address) return <a href={address} target="_blank" rel="noopener noreferrer">{a.value}</a>;
  if (a.value === '') return <span class={css.empty}>{a.type === 'empty' ? t('no value') : t('empty text')}</span>;
  return <LongText text={a.value} />;
}

/** The attribute as a field of searches. */
function fieldOf(scope: AttributeScope, a: Attribute): FieldValue {
  return { field: attribute(`${scope}.`, a.key), value: a.value };
}

/** Whether a search can name the value. */
function isSearchable(state: TraceState, a: Attribute): boolean {
  return state.source.kind === 'server' && a.value.length <= 2048 && a.type !== 'empty' && a.type !== 'bytes';
}

/** The chosen attributes that a span has, for "find more like this". */
export function chosenValues(state: TraceState, detail: SpanDetail): FieldValue[] {
  if (state.alike.value.size === 0) return [];
  const all = (['span', 'resource'] as const).flatMap((scope) => (scope === 'span' ? detail.attributes : detail.resource).filter((a) => isSearchable(state, a)).map((a) => fieldOf(scope, a)));
  return all.filter((f) => state.alike.value.has(f.field));
}

/** Filter, exclude, group, choose for "find more like this", pin and copy; visible while the pointer or the focus is on the attribute. */
function ItemActions({ state, detail, scope, attribute: a }: ItemProps) {
  const own = scope === 'span' || scope === 'resource';
  const pinned = state.pins.value.includes(a.key);
  const field = fieldOf(scope, a);
  const alike = state.alike.value.has(field.field);
  return (
    <span class={css.actions}>
      {isSearchable(state, a) && <SearchActions field={field} name={a.key} detail={detail} />}
      {isSearchable(state, a) && own && <Button kind="quiet" icon="plus" class={css.action} label={alike ? t('Exclude {key} from “Find more like this”', { key: a.key }) : t('Use {key} in “Find more like this”', { key: a.key })} aria-pressed={alike} onClick={() => toggleAlike(state, field.field)} />}
      {own && <Button kind="quiet" icon="pin" class={css.action} label={pinned ? t('Remove {key} from the rows', { key: a.key }) : t('Show {key} in the rows', { key: a.key })} aria-pressed={pinned} onClick={() => togglePin(state, a.key)} />}
      <Button kind="quiet" icon="copy" class={css.action} label={t('Copy {key}', { key: a.key })} onClick={() => void copy(a.value, t('Value'))} />
    </span>
  );
}

function toggleAlike(state: TraceState, field: string): void {
  const next = new Set(state.alike.value);
  if (!next.delete(field)) next.add(field);
  state.alike.value = next;
}

/** Filter by a value, exclude it, and group the spans of the operation by the field. */
export function SearchActions({ field, name, detail }: { field: FieldValue; name: string; detail: SpanDetail }) {
  return (
    <>
      <Action icon="filter" label={t('Find spans with this {key}', { key: name })} href={exploreLink(spansWith(field), detail)} />
      <Action icon="minus" label={t('Find spans of this operation with a different {key}', { key: name })} href={exploreLink(spansWithout(field, detail), detail)} />
      <Action icon="group" label={t('Group the spans of this operation by {key}', { key: name })} href={groupLink(field.field, detail)} />
    </>
  );
}

/** Explore's groups of an operation by a field. */
export function groupLink(field: string, detail: SpanDetail): string {
  return format({ ...exploreView(spansOf(detail), detail), tab: 'groups', by: [field] });
}

function Action({ icon, label, href }: { icon: IconName; label: string; href: string }) {
  return <a class={css.action} href={href} aria-label={label} title={label}><Icon name={icon} /></a>;
}

/** Links of the configuration that belong to an attribute. */
function AttributeLinks({ state, detail, scope, attribute: a }: ItemProps) {
  if (scope !== 'span' && scope !== 'resource') return null;
  const templates = config.value?.links ?? [];
  return <ExternalLinks links={linksFor(templates, 'attribute', subjectOf(state.model.value.traceID, detail), a.key)} />;
}

const hour = 3_600_000;

/** Explore with a search, in a time range that contains the span. */
export function exploreView(q: string, span: { start: string }): View {
  const start = millis(span.start);
  const recent = Date.now() - start < hour;
  const range = recent ? defaultRange : { from: iso(start - hour / 2), to: iso(start + hour / 2) };
  return linked({ page: 'explore' }, { q, range });
}

/** URL of `exploreView`. */
export function exploreLink(q: string, span: { start: string }): string {
  return format(exploreView(q, span));
}

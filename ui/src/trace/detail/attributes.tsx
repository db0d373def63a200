import { useState } from 'preact/hooks';
import type { Attribute, SpanDetail } from '../../api/types';
import { Button, Input } from '../../shell/controls';
import { Icon, type IconName } from '../../shell/icons';
import { iso, millis } from '../../shell/format';
import { copy } from '../../shell/toast';
import { defaultRange, format, linked, type View } from '../../shell/url';
import { togglePin } from '../moves';
import type { TraceState } from '../state';
import { Code, LongText } from './code';
import { linkOf, withoutValue, withValue, type AttributeScope } from './conditions';
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
      {all > 6 && <Input class={css.filter} icon="search" type="search" aria-label="Filter attributes" placeholder={`Filter ${all} attributes`} value={filter} onInput={(e) => setFilter((e.currentTarget as HTMLInputElement).value)} />}
      {shown.map((g) => (
        <section key={g.title}>
          {groups.length > 1 && <h3 class={css.group}>{g.title}</h3>}
          <AttributeList state={state} detail={detail} scope={g.scope} attributes={g.attributes} />
        </section>
      ))}
      {all === 0 && <p class={css.nothing}>No attributes</p>}
      {all > 0 && shown.length === 0 && <p class={css.nothing}>No attribute contains “{filter}”</p>}
    </>
  );
}

/** Keys and values. */
export function AttributeList({ state, detail, scope, attributes }: { state: TraceState; detail: SpanDetail; scope: AttributeScope; attributes: Attribute[] }) {
  return <dl class={css.list}>{attributes.map((a, i) => <Item key={`${a.key} ${i}`} state={state} detail={detail} scope={scope} attribute={a} />)}</dl>;
}

interface ItemProps {
  state: TraceState;
  detail: SpanDetail;
  scope: AttributeScope;
  attribute: Attribute;
}

function Item(props: ItemProps) {
  const a = props.attribute;
  const code = a.type === 'array' || a.type === 'kvlist' || a.type === 'string' ? prettyJSON(a.value) ?? prettySQL(a.value) : null;
  const small = code === null || a.value.length < 28;
  return (
    <div class={small ? css.item : css.wideItem}>
      <dt title={a.key}><span>{'\u200e' + a.key}</span></dt>
      <dd>{small ? <Value attribute={a} /> : <Code tokens={code} label={a.key} />}<ItemActions {...props} /></dd>
    </div>
  );
}

function Value({ attribute: a }: { attribute: Attribute }) {
  const address = a.type === 'string' ? linkOf(a.value) : '';
  if (address) return <a href={address} target="_blank" rel="noopener noreferrer">{a.value}</a>;
  if (a.value === '') return <span class={css.empty}>{a.type === 'empty' ? 'no value' : 'empty text'}</span>;
  return <LongText text={a.value} />;
}

/** Filter, exclude, pin and copy; visible while the pointer or the focus is on the attribute. */
function ItemActions({ state, detail, scope, attribute: a }: ItemProps) {
  const searchable = state.source.kind === 'server' && a.value.length <= 2048 && a.type !== 'empty' && a.type !== 'bytes';
  const canPin = scope === 'span' || scope === 'resource';
  const pinned = state.pins.value.includes(a.key);
  return (
    <span class={css.actions}>
      {searchable && <Action icon="filter" label={`Find spans with this ${a.key}`} href={exploreLink(withValue(scope, a), detail)} />}
      {searchable && <Action icon="minus" label={`Find spans of this operation with another ${a.key}`} href={exploreLink(withoutValue(scope, a, detail), detail)} />}
      {canPin && <Button kind="quiet" icon="pin" class={css.action} label={pinned ? `Remove ${a.key} from the rows` : `Show ${a.key} in the rows`} aria-pressed={pinned} onClick={() => togglePin(state, a.key)} />}
      <Button kind="quiet" icon="copy" class={css.action} label={`Copy ${a.key}`} onClick={() => void copy(a.value, 'Value')} />
    </span>
  );
}

function Action({ icon, label, href }: { icon: IconName; label: string; href: string }) {
  return <a class={css.action} href={href} aria-label={label} title={label}><Icon name={icon} /></a>;
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

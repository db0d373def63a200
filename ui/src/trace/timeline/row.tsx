import type { HTMLAttributes, VNode } from 'preact';
import { count, duration } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { Name } from '../../shell/name';
import { t } from '../../shell/text';
import { operation, serviceName, shownService } from '../model/span';
import { flag, fold, type CriticalPath, type Rows, type TraceModel, type UsualTexts } from '../model/types';
import { groupBar, spanBar } from './bar';
import type { Axis } from './axis';
import css from './row.module.css';

/** What all rows have in common. A new object means that all rows change. */
export interface RowContext {
  model: TraceModel;
  /** Colors of the services of the model. */
  colors: readonly string[];
  rows: Rows;
  axis: Axis;
  path: CriticalPath | null;
  usual: UsualTexts | null;
  matches: ReadonlySet<number> | null;
  /** Spans of the search that led to the trace. */
  marks: ReadonlySet<number> | null;
  /** Spans that were chosen for a pattern. */
  chosen: readonly number[];
  /** Values of the pinned attributes of a span, as far as they are known. */
  pinned: (span: number) => string;
  /** Most levels that are indented. */
  levels: number;
  /** Characters for which the name column has space, about. */
  characters: number;
  /** Index at which a name can be cut. */
  cut: (name: string) => number;
}

/** Id of the element of a row. */
export function rowID(key: number): string {
  return key >= 0 ? `span-${key}` : `group-${~key}`;
}

/** Properties of a row. `copy` is an ancestor that stays in view. */
export interface RowProps {
  context: RowContext;
  index: number;
  /** Whether its span is in the detail panel. */
  selected: boolean;
  /** Whether it has the cursor. */
  active: boolean;
  /** Pixels in the scrolled area. */
  top: number;
  copy?: boolean;
}

/** A row of the waterfall: a span, or a group of siblings. Its parts are functions: as components, they would cost more than what they draw. */
export function Row({ context: c, index, selected, active, top, copy }: RowProps) {
  const key = c.rows.row[index];
  const folds = c.rows.fold[index];
  const isGroup = key < 0;
  const span = isGroup ? c.model.groups.members[c.model.groups.offset[~key]] : key;
  const matched = hasMatch(c, key, c.matches);
  const marked = hasMatch(c, key, c.marks);
  const names = [css.row, selected && css.selected, active && css.active, c.matches && !matched && css.faint, matched && css.matched, marked && css.marked, copy ? css.copy : !isGroup && css.choosable];
  const service = shownService(c.model, span);
  const name = operation(c.model, span);
  const hidden = isGroup ? 0 : c.rows.hidden[index];
  const badge = isGroup ? `×${count(c.model.groups.offset[~key + 1] - c.model.groups.offset[~key])}` : hidden > 0 ? `+${count(hidden)}` : null; // "" would be a text node
  const pins = (!isGroup && c.pinned(span)) || null;
  const long = nameLength(c, index, span) + (pins?.length ?? 0) > c.characters;
  const semantics: HTMLAttributes<HTMLDivElement> = copy ? { 'aria-hidden': 'true' } : {
    role: 'row', id: rowID(key), 'aria-level': c.rows.level[index] + 1, 'aria-rowindex': index + 1, 'aria-selected': selected ? 'true' : 'false',
    'aria-expanded': folds === fold.leaf ? undefined : folds === fold.open ? 'true' : 'false',
  };
  return (
    <div {...semantics} class={names.filter(Boolean).join(' ')} style={{ top: `${top}px` }} data-row={index}>
      <div class={long ? `${css.name} ${css.long}` : css.name} role={copy ? undefined : 'gridcell'}>
        {key >= 0 && c.chosen.includes(key) && <span class={css.chosen}><span class="visually-hidden">{t('selected')} </span></span>}
        {marked && <span class="visually-hidden">{t('found')} </span>}
        {rowMark(c.model.flags[span], isGroup ? c.model.groups.errors[~key] : 0, isGroup)}
        {pins && <span class={css.pins}>{pins}</span>}
        {/* Indentation, fold arrow and mark of the service in one element. */}
        <span
          class={c.model.peer[span] >= 0 ? css.inferred : css.lead} data-fold={folds === fold.leaf ? undefined : folds === fold.open ? 'open' : 'folded'}
          style={{ color: c.colors[service], paddingLeft: `${12 * Math.min(c.rows.level[index], c.levels)}px` }}
        />
        {/* Visible only where it differs from the row above in the tree. */}
        <span class={sameAsParent(c, index, span) ? css.sameService : css.service}>{serviceName(c.model, service)} </span>
        {long ? <Name class={css.operation} text={name} cut={c.cut(name)} title="" /> : <span class={css.operation}>{name}</span>}
        {badge && ' '}
        {badge && <span class={css.badge} title={hidden > 0 ? t('{hidden} spans are hidden', { hidden: count(hidden) }) : undefined}>{badge}</span>}
      </div>
      {isGroup ? groupBar(c, ~key, copy) : spanBar(c, span, folds === fold.folded, copy)}
    </div>
  );
}

/** Whether the span of a row, or one of its group, is in a set. */
function hasMatch(c: RowContext, key: number, spans: ReadonlySet<number> | null): boolean {
  if (!spans || key >= 0) return !!spans?.has(key);
  const { offset, members } = c.model.groups;
  for (let i = offset[~key]; i < offset[~key + 1]; i++) if (spans.has(members[i])) return true;
  return false;
}

/** The mark in the gutter: an error of the span, or of a span below it, or a warning. */
function rowMark(flags: number, errors: number, group: boolean): VNode | null {
  const own = group ? 0 : flags & flag.error;
  const below = group ? errors : flags & flag.errorBelow;
  if (own) return <span class={css.mark}><Mark kind="error" size={12} /></span>;
  if (below) return <span class={css.mark}><Mark kind="errorChild" size={12} /></span>;
  if (!group && flags & flag.warned) return <span class={css.mark}><Mark kind="warn" size={12} /></span>;
  return null;
}

/** Whether the service stands already in the row above in the tree. */
function sameAsParent({ model, rows }: RowContext, index: number, span: number): boolean {
  const parent = model.parent[span];
  return parent >= 0 && rows.level[index] > 0 && shownService(model, parent) === shownService(model, span);
}

/** Characters of a row: indentation, service and operation, and what may follow. */
function nameLength(c: RowContext, index: number, span: number): number {
  const { model, rows } = c;
  const service = sameAsParent(c, index, span) ? 0 : model.services[shownService(model, span)].length + 1;
  return 2 * Math.min(rows.level[index], c.levels) + service + operation(model, span).length + (rows.fold[index] === fold.folded ? 8 : 0);
}

/** Tooltip of a row: for its name, or for its bar. */
export function rowTitle(c: Pick<RowContext, 'model' | 'usual'>, key: number, ofBar: boolean): string {
  if (key < 0) return '';
  const { model } = c;
  if (ofBar) return c.usual?.text(key) ?? '';
  const kind = model.peer[key] >= 0 ? t(', called by {model}', { model: serviceName(model, model.service[key]) }) : '';
  return `${serviceName(model, shownService(model, key))}: ${operation(model, key)}${kind}, ${duration(model.end[key] - model.start[key])}`;
}

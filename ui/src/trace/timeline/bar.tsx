import type { ComponentChildren, CSSProperties, VNode } from 'preact';
import { count, duration } from '../../shell/format';
import { t } from '../../shell/text';
import { shownService } from '../model/span';
import { flag } from '../model/types';
import { eventMarks, extent, groupTime, pieces, slivers, type EventMark, type Extent } from './bars';
import { labelGap, placeLabel, textWidth } from './labels';
import { layers, usualRange } from './layers';
import type { RowContext } from './row';
import css from './row.module.css';

/** Color of the shown service. The bar takes it as its text color: custom properties would be inherited by each row at a cost. */
const colorOf = ({ model, colors }: RowContext, span: number): string => colors[shownService(model, span)];
const px = (n: number): string => `${Math.round(n * 10) / 10}px`;

/** The cell of a bar. */
const cell = (copy: boolean | undefined, children: ComponentChildren, usual?: string, style?: CSSProperties): VNode => (
  <div class={usual ?? css.time} role={copy ? undefined : 'gridcell'} style={style}>{children}</div>
);

/**
 * The bar of a span: solid on the critical path, hollow off it, hatched where it waits, light with a red edge where it failed, with its events and duration, and below it the
 * usual p50 to p95. What lies on the path and what is usual are backgrounds: rows with fewer elements scroll faster.
 */
export function spanBar(c: RowContext, span: number, folded: boolean, copy?: boolean): VNode {
  const { model, axis, path, usual } = c;
  const bar = extent(axis, model.start[span], model.end[span]);
  const text = duration(model.end[span] - model.start[span]);
  if (bar.outside) return cell(copy, outside(bar, text));
  const width = bar.right - bar.left;
  const failed = (model.flags[span] & flag.error) !== 0;
  const events = eventMarks(model, span, axis);
  const lastEvent = events.length > 0 ? events[events.length - 1].at + 5 : 0;
  const range = usual && usualRange(usual, model, span, axis);
  const mark = usual?.mark[span] ?? 0;
  const tiny = width < 5;
  const names = [tiny ? css.tiny : css.bar, failed && css.failed];
  const drawn = layers(path && !(tiny && failed) ? pieces(model, path, span, folded, axis, bar) : []);
  return cell(copy, [
    <span class={names.filter(Boolean).join(' ')} style={{ color: colorOf(c, span), left: px(bar.left), width: px(width), ...drawn }} />,
    ...events.map((e) => eventMark(e, model)),
    label(lastEvent > bar.right ? { ...bar, right: lastEvent } : bar, text, axis.width, mark === 2 ? usual!.percentile(span) : ''),
  ], range ? (mark ? css.slow : css.usual) : undefined, range ?? undefined);
}

/** Folded siblings: a sliver for each, and the sum, median and maximum of their durations. */
export function groupBar(c: RowContext, group: number, copy?: boolean): VNode {
  const { model, axis } = c;
  const { groups } = model;
  const { start, end } = groupTime(model, group);
  const bar = extent(axis, start, end);
  const text = t('sum {sum}, p50 {p50}, max {max}', { sum: duration(groups.sum[group]), p50: duration(groups.p50[group]), max: duration(groups.max[group]) });
  if (bar.outside) return cell(copy, outside(bar, text));
  const color = colorOf(c, groups.members[groups.offset[group]]);
  return cell(copy, [...slivers(model, group, axis).map((s) => <span class={css.sliver} style={{ color, left: px(s.left), width: px(s.width) }} />), label(bar, text, axis.width)]);
}

function eventMark(mark: EventMark, model: RowContext['model']): VNode {
  const name = model.names[model.eventName[mark.event]];
  const title = mark.count > 1 ? t('{count} events, first: {name}', { count: count(mark.count), name }) : name;
  return <span class={mark.exception ? css.exception : css.event} style={{ left: `clamp(4px, ${px(mark.at)}, calc(100% - 4px))` }} title={title} />;
}

function label(bar: Extent, text: string, width: number, percentile = ''): VNode {
  const whole = percentile ? `${text} ▲ ${percentile}` : text;
  const { side, at } = placeLabel(bar.left, bar.right, textWidth(whole), width);
  const content = percentile ? <>{text} <b class={css.percentile}>▲ {percentile}</b></> : text;
  if (side === 'left') return <span class={css.label} style={{ right: px(width - bar.left + labelGap) }}>{content}</span>;
  return <span class={side === 'inside' ? css.labelInside : css.label} style={{ left: px(at) }}>{content}</span>;
}

/** The span is before or after the visible part of the time axis. */
function outside(bar: Extent, text: string): VNode {
  return <span class={bar.outside === 'before' ? css.before : css.after}>{bar.outside === 'before' ? `‹ ${text}` : `${text} ›`}</span>;
}

import { Badge, classes } from '../shell/controls';
import { count, duration, none } from '../shell/format';
import { Mark } from '../shell/icons';
import { Name } from '../shell/name';
import { serviceColor } from '../shell/service-color';
import { t } from '../shell/text';
import { link } from '../shell/url';
import { operation, serviceName, shownService, spanID } from '../trace/model/span';
import type { TraceModel } from '../trace/model/types';
import { strokes } from './bars';
import type { Places } from './head';
import { calls } from './rank';
import { signed } from './sentence';
import type { Pair } from './use-pair';
import { change } from './types';
import css from './compare.module.css';

/** What all rows have in common. */
export interface RowContext {
  pair: Pair;
  places: Places;
  /** Pixels for each nanosecond. */
  scale: number;
  /** The largest difference of own times. */
  maxOwn: number;
  /** Whether rows stand below the row that calls them. */
  tree: boolean;
}

/** The first span of a row, in the trace that has it; A if both have. */
export function firstSpan({ a, b, comparison: c }: Pair, row: number): { model: TraceModel; span: number } {
  return calls(c, row, 'a') > 0 ? { model: a, span: c.a.spans[c.a.offset[row]] } : { model: b, span: c.b.spans[c.b.offset[row]] };
}

/** Id of the element of a row. */
export const rowID = (row: number): string => `path-${row}`;

/** A call path: what it is, its calls in both traces on one scale, times and numbers of calls. */
export function CompareRow({ context: x, row, index, top, active }: { context: RowContext; row: number; index: number; top: number; active: boolean }) {
  const { a, b, comparison: c } = x.pair;
  const { model, span } = firstSpan(x.pair, row);
  const [inA, inB] = [calls(c, row, 'a') > 0, calls(c, row, 'b') > 0];
  const color = serviceColor(model.services[shownService(model, span)]);
  const own = (inA ? c.a.own[row] : 0) - (inB ? c.b.own[row] : 0);
  return (
    <div class={classes(css.row, active && css.active)} role="row" id={rowID(row)} aria-rowindex={index + 2} style={{ top: `${top}px` }} data-index={index}>
      <div class={css.path} role="gridcell"><Path context={x} row={row} model={model} span={span} color={color} /></div>
      <div class={css.bars} role="gridcell" style={{ color }}>
        {inA && strokes(a, c.a, row, x.scale).map((s) => <i class={css.barA} style={{ left: `${s.left}px`, width: `${s.width}px` }} />)}
        {inB && strokes(b, c.b, row, x.scale).map((s) => <i class={css.barB} style={{ left: `${s.left}px`, width: `${s.width}px` }} />)}
      </div>
      <div class={css.num} role="gridcell">{inA ? duration(c.a.time[row]) : none}</div>
      <div class={classes(css.num, css.second)} role="gridcell">{inB ? duration(c.b.time[row]) : none}</div>
      <Difference ns={(inA ? c.a.time[row] : 0) - (inB ? c.b.time[row] : 0)} differs={(c.change[row] & change.time) !== 0} />
      <div class={css.own} role="gridcell" title={t('Self time: {own}', { own: signed(own) })}><OwnBar own={own} max={x.maxOwn} /></div>
      <div class={classes(css.num, css.calls, (c.change[row] & (change.calls | change.onlyA | change.onlyB)) !== 0 && css.strong)} role="gridcell">
        {count(calls(c, row, 'a'))} : {count(calls(c, row, 'b'))}
      </div>
    </div>
  );
}

/** Service, where it differs from the row above, operation, and what is in one trace only. */
function Path({ context: x, row, model, span, color }: { context: RowContext; row: number; model: TraceModel; span: number; color: string }) {
  const { comparison: c } = x.pair;
  const service = model.services[shownService(model, span)];
  const p = c.parent[row];
  const above = p >= 0 && x.tree ? firstSpan(x.pair, p) : null;
  const same = above !== null && above.model.services[shownService(above.model, above.span)] === service;
  const bits = c.change[row];
  const name = operation(model, span);
  const failsInA = c.a.errors[row] > 0;
  return (
    <>
      <i class={model.peer[span] >= 0 ? css.inferred : css.swatch} style={{ color, marginLeft: x.tree ? `${14 * Math.min(c.depth[row], 12)}px` : '0' }} />
      <span class={same ? css.sameService : css.service}>{serviceName({ services: [service] }, 0)} </span>
      <a class={css.operation} href={link(x.places.trace(model.traceID), { span: spanID(model, span) })} tabIndex={-1} title={`${service}: ${name}`}><Name text={name} title="" /></a>
      {(bits & change.onlyA) !== 0 && <Badge>{t('only in A')}</Badge>}
      {(bits & change.onlyB) !== 0 && <Badge>{t('only in B')}</Badge>}
      {(bits & change.errors) !== 0 ? <Badge kind="error"><Mark kind="error" size={11} label="" />{failsInA ? t('fails in A') : t('fails in B')}</Badge> : c.a.errors[row] + c.b.errors[row] > 0 && <Mark kind="error" size={12} />}
    </>
  );
}

function Difference({ ns, differs }: { ns: number; differs: boolean }) {
  const arrow = !differs || ns === 0 ? '' : ns > 0 ? '▲ ' : '▼ ';
  return <div class={classes(css.num, css.difference, arrow && (ns > 0 ? css.more : css.less))} role="gridcell">{arrow}{signed(ns)}</div>;
}

const more = [css.more2, css.more3, css.more4];
const less = [css.less2, css.less3, css.less4];

/** The difference of own times from a line: longer to the right. */
function OwnBar({ own, max }: { own: number; max: number }) {
  const share = max > 0 ? Math.abs(own) / max : 0;
  if (share < 0.005) return null;
  const width = share * (own > 0 ? 66 : 28);
  const step = share > 0.35 ? 2 : share > 0.12 ? 1 : 0;
  return <i class={classes(css.ownBar, (own > 0 ? more : less)[step])} style={{ left: `${own > 0 ? 30 : 30 - width}%`, width: `${width}%` }} />;
}

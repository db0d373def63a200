import { useMemo, useRef } from 'preact/hooks';
import { t, tn } from '../shell/text';
import { count, duration } from '../shell/format';
import { useKeys } from '../shell/keys';
import { link, navigate, parse, view } from '../shell/url';
import { spanID } from '../trace/model/span';
import { areaHeight } from '../trace/timeline/rowwindow';
import { ticks } from '../trace/timeline/ticks';
import { useMedia, useSize } from '../shell/use-size';
import type { Places } from './head';
import { byImpact, shownRows } from './rank';
import { CompareRow, firstSpan, rowID, type RowContext } from './row';
import { useGrid } from './use-grid';
import type { Pair } from './use-pair';
import css from './compare.module.css';

/** Pixels that stay free at the end of the scale. */
const padding = 12;
/** Pixels beside the bars where they stand below the names. */
const narrowGutter = 12;

/** The rows of a pair in the chosen order. */
export function useRows(pair: Pair): Int32Array {
  const { all, sort } = view.value;
  return useMemo(() => {
    const rows = shownRows(pair.comparison, all);
    return sort === 'largest' ? Int32Array.from(byImpact(pair.comparison, rows)) : rows;
  }, [pair, all, sort]);
}

/** The table of call paths. One tab stop: arrow keys, j and k move, Enter opens the span. */
export function CompareTable({ pair, places, rows }: { pair: Pair; places: Places; rows: Int32Array }) {
  const narrow = useMedia('(max-width: 640px)');
  const grid = useRef<HTMLDivElement>(null);
  const head = useRef<HTMLDivElement>(null);
  const open = (index: number): void => {
    const { model, span } = firstSpan(pair, rows[index]);
    navigate(parse(new URL(link(places.trace(model.traceID), { span: spanID(model, span) }), location.href)));
  };
  const { scroller, size, list, seen, current, activate, onScroll, onKeyDown } = useGrid(rows.length, narrow ? 56 : 32, open);
  const headWidth = useSize(head).width;
  const width = narrow ? size.width - 2 * narrowGutter : headWidth;
  const longest = Math.max(1, pair.a.duration, pair.b.duration);
  const context: RowContext = { pair, places, scale: Math.max(1, width - padding) / longest, maxOwn: useMaxOwn(pair), tree: view.value.sort !== 'largest' };
  useTableKeys(grid);
  const elements = [];
  for (let i = seen.first; i < seen.last; i++) elements.push(<CompareRow key={rows[i]} context={context} row={rows[i]} index={i} top={seen.shift + i * list.height} active={i === current} />);
  return (
    <div class={css.table}>
      <div class={css.columns} aria-hidden="true">
        <span>{t('Call path')}</span>
        <div ref={head} class={css.scale}><span>{t('A solid, B hollow')}</span><Scale longest={longest} width={width} /></div>
        <span class={css.num}>A</span><span class={css.num}>B</span><span class={css.num}>{t('Difference')}</span><span class={css.own}>{t('Self time')}</span><span class={css.num}>{t('Calls A : B')}</span>
      </div>
      <div ref={scroller} class={css.scroller} onScroll={onScroll}>
        <div
          ref={grid} class={css.grid} role="grid" aria-label={t('Call paths')} tabIndex={0} aria-rowcount={rows.length + 1} aria-activedescendant={rows.length > 0 ? rowID(rows[current]) : undefined}
          onKeyDown={onKeyDown} onClick={(e) => select(e, activate)}
        >
          <div role="row" class="visually-hidden" aria-rowindex={1}>
            {[t('Call path'), t('A solid, B hollow'), 'A', 'B', t('Difference'), t('Self time'), t('Calls A : B')].map((name) => <span key={name} role="columnheader">{name}</span>)}
          </div>
          <div role="rowgroup" class={css.area} style={{ height: `${areaHeight(list)}px` }}>{elements}</div>
        </div>
        <Hidden pair={pair} shown={rows.length} />
      </div>
    </div>
  );
}

function select(e: MouseEvent, activate: (index: number) => void): void {
  const index = (e.target as Element).closest<HTMLElement>('[data-index]')?.dataset.index;
  if (index !== undefined) activate(Number(index));
}

/** Lets j and k focus the table, which then handles them itself. */
function useTableKeys(grid: { current: HTMLElement | null }): void {
  const focus = (e: KeyboardEvent): void | false => (e.key.startsWith('Arrow') ? false : grid.current?.focus());
  useKeys(t('Compare'), [
    { keys: ['j', 'ArrowDown'], label: t('Next call path'), run: focus },
    { keys: ['k', 'ArrowUp'], label: t('Previous call path'), run: focus },
    { keys: ['Enter'], label: t('Open the span') },
  ]);
}

/** The largest difference of own times. */
function useMaxOwn({ comparison: c }: Pair): number {
  return useMemo(() => {
    let most = 0;
    for (let r = 0; r < c.rows; r++) most = Math.max(most, Math.abs(c.a.own[r] - c.b.own[r]));
    return most;
  }, [c]);
}

function Scale({ longest, width }: { longest: number; width: number }) {
  const scale = Math.max(1, width - padding) / longest;
  return <>{ticks(0, longest, width, 110).filter((tick) => tick.at > 0 && tick.at * scale < width - 40 && tick.at * scale > 110).map((tick) => <span key={tick.at} class={css.tick} style={{ left: `${tick.at * scale}px` }}>{tick.label}</span>)}</>;
}

/** Says how many rows are left out, and shows them. */
function Hidden({ pair, shown }: { pair: Pair; shown: number }) {
  const hidden = pair.comparison.rows - shown;
  if (hidden === 0) return null;
  return (
    <p class={css.hidden}>
      {tn(hidden, '{n} row whose time differs by less than {threshold} or 5 % is hidden.', '{n} rows whose times differ by less than {threshold} or 5 % are hidden.', { n: count(hidden), threshold: duration(pair.comparison.threshold) })}{' '}
      <button type="button" class={css.link} onClick={() => navigate({ all: true }, { replace: true })}>{t('Show all')}</button>
    </p>
  );
}

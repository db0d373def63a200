import { useRef } from 'preact/hooks';
import { classes } from '../shell/controls';
import { duration } from '../shell/format';
import { Mark } from '../shell/icons';
import { Name } from '../shell/name';
import { serviceLabel } from '../shell/service';
import { serviceColor } from '../shell/service-color';
import { ServiceSwatch } from '../shell/service-mark';
import { t } from '../shell/text';
import { link, visit } from '../shell/url';
import { durationOf, operation, serviceName, shownService, spanID } from '../trace/model/span';
import { flag, type TraceModel } from '../trace/model/types';
import { areaHeight } from '../trace/timeline/rowwindow';
import { ticks } from '../trace/timeline/ticks';
import { useMedia, useSize } from '../shell/use-size';
import type { Places } from './head';
import { useGrid } from './use-grid';
import type { Pair } from './use-pair';
import css from './timelines.module.css';

/** Pixels that stay free at the end of the axis, for the duration of the last spans. */
const padding = 64;
const maxLevels = 16;

/** Both traces as waterfalls, one above the other, on one time axis. */
export default function Timelines({ pair, places }: { pair: Pair; places: Places }) {
  const head = useRef<HTMLDivElement>(null);
  const { width } = useSize(head);
  const longest = Math.max(1, pair.a.duration, pair.b.duration);
  const scale = Math.max(1, width - padding) / longest;
  return (
    <div class={css.timelines}>
      <div class={css.head} aria-hidden="true">
        <span>{t('Service and operation')}</span>
        <div ref={head} class={css.axis}>{ticks(0, longest, width, 110).filter((tick) => tick.at * scale < width - 40).map((tick) => <span key={tick.at} style={{ left: `${tick.at * scale}px` }}>{tick.label}</span>)}</div>
      </div>
      <Half name="A" label={t('Timeline of A')} model={pair.a} scale={scale} places={places} />
      <Half name="B" label={t('Timeline of B')} model={pair.b} scale={scale} places={places} />
    </div>
  );
}

interface HalfProps {
  name: 'A' | 'B';
  label: string;
  model: TraceModel;
  /** Pixels for each nanosecond. */
  scale: number;
  places: Places;
}

/** One trace. One tab stop: arrow keys, j and k move, Enter opens the span. */
function Half({ name, label, model, scale, places }: HalfProps) {
  const narrow = useMedia('(max-width: 640px)');
  const open = (span: number): void => visit(link(places.trace(model.traceID), { span: spanID(model, span) }));
  const { scroller, list, seen, current, onScroll, onKeyDown } = useGrid(model.spans, narrow ? 44 : 24, open);
  const click = (e: MouseEvent): void => {
    const span = (e.target as Element).closest<HTMLElement>('[data-span]')?.dataset.span;
    if (span !== undefined) open(Number(span));
  };
  const rows = [];
  for (let i = seen.first; i < seen.last; i++) rows.push(<Row key={i} name={name} model={model} span={i} scale={scale} top={seen.shift + i * list.height} active={i === current} />);
  return (
    <section class={css.half} aria-label={label}>
      <span class={name === 'A' ? css.keyA : css.keyB} aria-hidden="true">{name}</span>
      <div ref={scroller} class={css.scroller} onScroll={onScroll}>
        <div role="grid" class={css.grid} aria-label={label} tabIndex={0} aria-rowcount={model.spans} aria-activedescendant={model.spans > 0 ? `${name}-${current}` : undefined} onKeyDown={onKeyDown} onClick={click}>
          <div role="rowgroup" class={css.area} style={{ height: `${areaHeight(list)}px` }}>{rows}</div>
        </div>
      </div>
    </section>
  );
}

function Row({ name, model, span, scale, top, active }: { name: string; model: TraceModel; span: number; scale: number; top: number; active: boolean }) {
  const service = serviceName(model, shownService(model, span));
  const parent = model.parent[span];
  const other = parent < 0 || serviceName(model, shownService(model, parent)) !== service;
  const failed = (model.flags[span] & flag.error) !== 0;
  const takes = duration(durationOf(model, span));
  return (
    <div id={`${name}-${span}`} role="row" aria-rowindex={span + 1} data-span={span} class={classes(css.row, active && css.active)} style={{ top: `${top}px` }}>
      <div role="gridcell" class={css.name} style={{ paddingLeft: `${Math.min(model.depth[span], maxLevels) * 12}px` }}>
        {failed && <Mark kind="error" size={12} label={t('error')} />}
        <ServiceSwatch name={service} inferred={model.peer[span] >= 0} />
        <span class={other ? css.service : 'visually-hidden'}>{serviceLabel(service)}</span>
        <Name text={operation(model, span)} class={css.operation} />
      </div>
      <div role="gridcell" class={css.lane} style={{ '--c': serviceColor(service) }}>
        <i class={classes(name === 'A' ? css.barA : css.barB, failed && css.failed)} style={{ left: `${model.start[span] * scale}px`, width: `${Math.max(2, (model.end[span] - model.start[span]) * scale)}px` }} />
        <span class={css.takes} style={{ left: `${model.end[span] * scale + 6}px` }}>{takes}</span>
      </div>
    </div>
  );
}

import type { CSSProperties } from 'preact';
import { duration } from '../../shell/format';
import { t } from '../../shell/text';
import { breaksOn, pixel, type Axis } from './axis';
import { marks } from './ticks';
import css from './breaks.module.css';

/** Bands where the axis leaves out idle time, in an element that is as wide as the axis. */
export function Breaks({ axis, style }: { axis: Axis; style?: CSSProperties }) {
  return <>{breaksOn(axis).map((b) => <div key={b.left} class={css.band} title={titleOf(b.time)} style={{ ...style, translate: `${b.left}px`, width: `${b.right - b.left}px` }} />)}</>;
}

/** Texts of the time axis: its ticks, and how much its breaks leave out. */
export function AxisTexts({ axis, tickClass }: { axis: Axis; tickClass: string }) {
  const { ticks, breaks } = marks(axis);
  return (
    <>
      <Breaks axis={axis} />
      {ticks.map((tick) => {
        const x = pixel(axis, tick.at);
        return x < axis.width - 24 && <span key={tick.at} class={tickClass} style={{ left: `${Math.round(x)}px` }}>{tick.label}</span>;
      })}
      {breaks.map((b) => b.label && <span key={`break ${b.left}`} class={css.label} title={titleOf(b.time)} style={{ left: `${Math.round(b.labelLeft)}px` }}>{b.label}</span>)}
    </>
  );
}

const titleOf = (time: number): string => t('No span runs for {time}. The axis skips this time.', { time: duration(time) });

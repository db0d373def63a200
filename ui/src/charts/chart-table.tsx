import { clock, none } from '../shell/format';
import type { TimeChartProps } from './time-chart';
import css from './time-chart.module.css';

/** The numbers of a chart as a table. */
export function ChartTable({ label, times, lines, format, zone }: TimeChartProps) {
  return (
    <div class={css.tableBox} role="region" aria-label={`${label}, table`} tabIndex={0}>
      <table class={css.table}>
        <thead><tr><th scope="col">Time</th>{lines.map((l) => <th key={l.name} scope="col" class={css.number}>{l.name}</th>)}</tr></thead>
        <tbody>
          {times.map((t, i) => (
            <tr key={t}>
              <th scope="row">{clock(t, zone, 0)}</th>
              {lines.map((l) => <td key={l.name} class={css.number}>{l.values[i] === null || l.values[i] === undefined ? none : format(l.values[i]!)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

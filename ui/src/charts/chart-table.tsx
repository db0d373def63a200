import { clock, none } from '../shell/format';
import { t } from '../shell/text';
import type { TimeChartProps } from './time-chart';
import css from './time-chart.module.css';

/** The numbers of a chart as a table. */
export function ChartTable({ label, times, lines, format, zone }: TimeChartProps) {
  return (
    <div class={css.tableBox} role="region" aria-label={t('{label}, table', { label })} tabIndex={0}>
      <table class={css.table}>
        <thead><tr><th scope="col">{t('Time')}</th>{lines.map((l) => <th key={l.name} scope="col" class={css.number}>{l.name}</th>)}</tr></thead>
        <tbody>
          {times.map((item, i) => (
            <tr key={item}>
              <th scope="row">{clock(item, zone, 0)}</th>
              {lines.map((l) => <td key={l.name} class={css.number}>{l.values[i] === null || l.values[i] === undefined ? none : format(l.values[i]!)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

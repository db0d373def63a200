import type { AttributeLine, ValueDurations } from '../../../api/explain';
import { axisDuration, count, duration } from '../../../shell/format';
import { t, tn } from '../../../shell/text';
import { keyName, valueName } from './words';
import css from './values.module.css';

const height = 30;
const bar = 6;

/** Durations of the traces with each value of a key: the selected ones in the color of the selection. */
export function Values({ line }: { line: AttributeLine }) {
  const { first, values } = line.values;
  const buckets = values[0]?.selected.length ?? 0;
  if (buckets === 0) return null;
  return (
    <section aria-label={t('Values of {key}', { key: keyName(line) })} class={css.values}>
      <div class={css.head}><h2>{keyName(line)}</h2><span>{line.op === '=' ? t('values by duration of the trace') : t('by duration of the trace')}</span></div>
      {values.map((v, i) => {
        const name = nameOf(line, i);
        return (
          <div key={v.text} class={css.row}>
            <span class={css.name} title={name}>{name}</span>
            <svg class={css.plot} viewBox={`0 0 ${buckets * bar} ${height}`} preserveAspectRatio="none" role="img" aria-label={summary(name, v, first)}>
              <Bars value={v} />
              <path class={css.axis} d={`M0 ${height - 0.5}H${buckets * bar}`} />
            </svg>
            <span class={css.count}>{count(v.traces)}</span>
          </div>
        );
      })}
      <div class={css.row} aria-hidden="true">
        <span />
        <span class={css.ticks}>{ticks(first, buckets).map((ns) => <span key={ns} style={{ left: `${((4 * Math.log2(ns) - first) / buckets) * 100}%` }}>{axisDuration(ns)}</span>)}</span>
        <span />
      </div>
    </section>
  );
}

function Bars({ value }: { value: ValueDurations['values'][number] }) {
  const max = Math.max(...value.selected.map((n, i) => n + value.rest[i]), 1);
  const y = (n: number): number => Math.sqrt(n / max) * (height - 3);
  return (
    <>
      {value.selected.map((n, i) => {
        const all = n + value.rest[i];
        if (all === 0) return null;
        const [h, part] = [y(all), n / all];
        return (
          <g key={i}>
            {part < 1 && <rect class={css.rest} x={i * bar} y={height - 1 - h * (1 - part)} width={bar - 1} height={h * (1 - part)} />}
            {part > 0 && <rect class={css.selected} x={i * bar} y={height - 1 - h} width={bar - 1} height={h * part} />}
          </g>
        );
      })}
    </>
  );
}

/** Name of a row: a value, or whether the condition of the line holds. */
function nameOf(line: AttributeLine, row: number): string {
  if (line.op === '=') return line.values.values[row].text || t('(empty)');
  if (line.op === 'exists') return row === 0 ? t('with it') : t('without it');
  return row === 0 ? valueName(line) : t('other numbers');
}

/** "northpay: 3,904 traces, 477 of them selected, most take 352 ms". */
function summary(name: string, v: ValueDurations['values'][number], first: number): string {
  const all = v.selected.map((n, i) => n + v.rest[i]);
  const most = 2 ** ((first + all.indexOf(Math.max(...all)) + 0.5) / 4);
  const selected = v.selected.reduce((a, b) => a + b, 0);
  return tn(v.traces, '{name}: {n} trace, {selected} selected, most take about {duration}', '{name}: {n} traces, {selected} selected, most take about {duration}', { name, n: count(v.traces), selected: count(selected), duration: duration(Math.round(most)) });
}

/** Durations with a label: 1 and 3 of each decade, or only some of them. Not 1 ns, which is written as 0. */
export function ticks(first: number, buckets: number): number[] {
  const [low, high] = [2 ** (first / 4), 2 ** ((first + buckets) / 4)];
  const out: number[] = [];
  for (let d = Math.floor(Math.log10(low)); d <= Math.log10(high); d++) for (const n of [1, 3]) if (n * 10 ** d >= Math.max(low, 2) && n * 10 ** d < high * 0.97) out.push(n * 10 ** d);
  return out.length > 5 ? out.filter((ns) => Number.isInteger(Math.log10(ns))) : out;
}

import { useRef } from 'preact/hooks';
import type { Explanation, Frequency, ShapeLine } from '../../../api/explain';
import { classes } from '../../../shell/controls';
import { duration, fixed, percent } from '../../../shell/format';
import { Name } from '../../../shell/name';
import { useRovingRows } from '../../../shell/roving';
import { ServiceSwatch } from '../../../shell/service-mark';
import { t, tn } from '../../../shell/text';
import { callText, differenceText } from './words';
import css from './lists.module.css';

interface ListProps {
  data: Explanation;
  /** The chosen call path. */
  path: number;
  onPath: (path: number) => void;
  /** URL of the traces of a line. */
  href: (filter: string) => string;
}

/** Operations whose own time on the critical path differs. */
export function TimeList({ data, path, onPath, href }: ListProps) {
  const body = useRef<HTMLTableSectionElement>(null);
  useRovingRows(body);
  const { lines } = data.time;
  if (lines.length === 0) return <p class={css.none}>{t('No operation takes a clearly different part of the critical path.')}</p>;
  return (
    <table class={css.table}>
      <caption class="visually-hidden">{t('Operations by difference in their self time on the critical path')}</caption>
      <thead><tr><th scope="col"><span class="visually-hidden">{t('Operation')}</span></th><th scope="col" class={css.number}>{t('selected')}</th><th scope="col" class={css.number}>{t('others')}</th><th scope="col" class={css.difference}>{t('difference')}</th></tr></thead>
      <tbody ref={body}>
        {lines.map((line) => (
          <tr key={line.filter} data-row class={classes(line.path === path && css.chosen)} onMouseEnter={() => onPath(line.path)}>
            <th scope="row"><a href={href(line.filter)} title={t('Traces with {operation}', { operation: `${line.service} ${line.name}` })} onFocus={() => onPath(line.path)}><ServiceSwatch name={line.service} /><b>{line.service}</b><Name text={line.path < 0 ? line.name : callText(data.paths, line.path)} title="" /></a></th>
            <td class={css.number}>{duration(line.selected)}</td>
            <td class={classes(css.number, css.weak)}>{duration(line.rest)}</td>
            <td class={classes(css.difference, line.difference > 0 ? css.grew : css.shrank)}>{differenceText(line.difference)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Call paths that selected traces have more or less often. */
export function ShapeList({ data, path, onPath, href }: ListProps) {
  const body = useRef<HTMLTableSectionElement>(null);
  useRovingRows(body);
  const { lines } = data.shape;
  return (
    <section aria-label={t('Shape')} class={css.shape}>
      <div class={css.head}><h2>{t('Shape')}</h2><span>{t('calls per trace, and paths only on one side')}</span></div>
      {lines.length === 0 && <p class={css.none}>{t('Both sides make the same calls about equally often.')}</p>}
      {lines.length > 0 && (
        <table class={css.table}>
          <thead><tr><th scope="col">{t('Path')}</th><th scope="col" class={css.frequency}>{t('selected')}</th><th scope="col" class={css.frequency}>{t('others')}</th></tr></thead>
          <tbody ref={body}>
            {lines.map((line) => (
              <tr key={line.path} data-row class={classes(line.path === path && css.chosen)} onMouseEnter={() => onPath(line.path)}>
                <th scope="row"><a href={href(line.filter)} title={pathOf(data, line)} onFocus={() => onPath(line.path)}><ServiceSwatch name={line.service} /><b>{line.service}</b><span>{shortPath(data, line)}</span>{line.below > 0 && <i>{tn(line.below, 'and {n} below', 'and {n} below')}</i>}</a></th>
                <td class={css.frequency}><Calls of={line.selected} against={line.rest} /></td>
                <td class={classes(css.frequency, css.weak)}><Calls of={line.rest} against={line.selected} hollow /></td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

const maxDots = 6;

/** Mean number of calls as dots and as text; the share of traces where that says more. */
function Calls({ of, against, hollow }: { of: Frequency; against: Frequency; hollow?: boolean }) {
  if (of.calls === 0) return <span>{t('never')}</span>;
  const rare = Math.max(of.traces, against.traces) - Math.min(of.traces, against.traces) > 0.05;
  const dots = Math.min(maxDots, Math.round(of.calls));
  return (
    <span class={css.calls}>
      {dots > 0 && <span class={css.dots} aria-hidden="true">{Array.from({ length: dots }, (_, i) => <i key={i} class={classes(hollow && css.hollow)} />)}</span>}
      <span>{rare ? t('{share} of traces', { share: percent(of.traces) }) : fixed(of.calls, 1)}</span>
    </span>
  );
}

/** A call with its caller. */
function shortPath({ paths }: Explanation, { path }: ShapeLine): string {
  const parent = paths.parent[path];
  return parent < 0 ? paths.name[path] : `${paths.name[parent]} › ${callText(paths, path)}`;
}

/** All calls from the root on. */
function pathOf({ paths }: Explanation, { path }: ShapeLine): string {
  const parts: string[] = [];
  for (let i = path; i >= 0; i = paths.parent[i]) parts.unshift(`${paths.service[i]} ${paths.name[i]}`);
  return parts.join(' › ');
}

import { fieldLabel } from '../../../query/field';
import { Badge, classes } from '../../../shell/controls';
import { iso, none, percentile, rate, share } from '../../../shell/format';
import { t } from '../../../shell/text';
import { link } from '../../../shell/url';
import { onlyGroup, type GroupRow } from '../groups/model';
import type { Run } from '../run';
import type { Change, Kind, Period } from './model';
import css from './times.module.css';

interface Props {
  changes: Change[];
  keys: string[];
  run: Run;
  earlier: Period;
}

const kindText: Record<Kind, string> = {
  new: t('new'), gone: t('gone'), failing: t('fails more'), recovered: t('fails less'), slower: t('slower'), faster: t('faster'), more: t('more calls'), fewer: t('fewer calls'),
};
const bad: Partial<Record<Kind, 'error' | 'warn'>> = { failing: 'error', slower: 'warn', gone: 'warn' };

/** The groups with their numbers now and then, the largest difference first. Numbers lead to their traces. */
export function ChangeTable({ changes, keys, run, earlier }: Props) {
  return (
    <table class={css.table} role="grid" aria-label={t('Two times compared')}>
      <thead>
        <tr>
          {keys.map((key, i) => <th key={key} scope="col" class={i > 0 ? css.wide : undefined}>{fieldLabel(key)}</th>)}
          <th scope="col" class={css.wide} aria-sort="descending">{t('Difference')}</th>
          <th scope="col" class={css.number}>{t('Per second')}</th><th scope="col" class={css.number}>{t('then')}</th>
          <th scope="col" class={css.number}>{t('Errors')}</th><th scope="col" class={css.number}>{t('then')}</th>
          <th scope="col" class={css.number}>p95</th><th scope="col" class={css.number}>{t('then')}</th>
        </tr>
      </thead>
      <tbody>{changes.map((c) => <Row key={c.where} c={c} run={run} earlier={earlier} />)}</tbody>
    </table>
  );
}

function Row({ c, run, earlier }: { c: Change; run: Run; earlier: Period }) {
  const href = (p: Period): string => link({ page: 'explore' }, { q: onlyGroup(run.q, c.where), of: 'spans', range: { from: iso(p.from), to: iso(p.to) } });
  const per = (r: GroupRow | null, p: Period): string => (r ? rate(r.count / Math.max(0.001, (p.to - p.from) / 1000)) : none);
  const errors = (r: GroupRow | null): string => (r ? share(r.errors / r.count) : none);
  const p95 = (r: GroupRow | null): string => (r ? percentile(r.p95) : none);
  const [now, then] = [c.now && href(run), c.then && href(earlier)];
  return (
    <tr data-row>
      {c.values.map((v, i) => (
        <th key={i} scope="row" class={i > 0 ? css.wide : css.value}>
          {i === 0 ? <a href={(now ?? then)!} title={c.where}>{valueText(v)}</a> : <span title={valueText(v)}>{valueText(v)}</span>}
          {i === 0 && c.values.length > 1 && <div class={css.second}>{valueText(c.values[1])}</div>}
        </th>
      ))}
      <td class={classes(css.kinds, css.wide)}>{c.kinds.map((k) => <Badge key={k} kind={bad[k]}>{kindText[k]}</Badge>)}</td>
      <td class={css.number}>{per(c.now, run)}</td><td class={classes(css.number, css.then)}>{then ? <a href={then} title={t('Traces from the earlier time')}>{per(c.then, earlier)}</a> : none}</td>
      <td class={classes(css.number, c.kinds.includes('failing') && css.failed)}>{errors(c.now)}</td><td class={classes(css.number, css.then)}>{errors(c.then)}</td>
      <td class={classes(css.number, c.kinds.includes('slower') && css.slow)}>{p95(c.now)}</td><td class={classes(css.number, css.then)}>{p95(c.then)}</td>
    </tr>
  );
}

function valueText(value: string | null): string {
  return value === null ? t('(no value)') : value || t('(empty)');
}

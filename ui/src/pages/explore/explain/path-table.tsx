import type { CallPaths } from '../../../api/explain';
import { classes } from '../../../shell/controls';
import { count, duration } from '../../../shell/format';
import { t } from '../../../shell/text';
import { treeOrder, type PathTimes } from './icicle-model';
import { callText, differenceText } from './words';
import css from './icicle.module.css';

const maxRows = 200;

/** The numbers of the icicle as a table: call paths in the order of the tree. */
export function PathTable({ paths, times, href }: { paths: CallPaths; times: PathTimes; href: (path: number) => string }) {
  const all = treeOrder(paths).filter((i) => times.selected[i] > 0 || times.rest[i] > 0);
  const rows = all.slice(0, maxRows);
  return (
    <div class={css.tableScroll} tabIndex={0} role="region" aria-label={t('Call paths by time')}>
      <table class={css.table}>
        <thead>
          <tr>
            <th scope="col">{t('Call path')}</th>
            <th scope="col" class={css.number}>{t('selected')}</th>
            <th scope="col" class={css.number}>{t('others')}</th>
            <th scope="col" class={css.number}>{t('difference')}</th>
            <th scope="col" class={css.number}>{t('self time')}</th>
            <th scope="col" class={css.number}>{t('calls')}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((i) => {
            const own = paths.selected.self[i] - paths.rest.self[i];
            return (
              <tr key={i}>
                <th scope="row" style={{ paddingLeft: `${Math.min(times.depth[i], 16) * 12}px` }}><a href={href(i)} title={`${paths.service[i]} ${paths.name[i]}`}><b>{paths.service[i]}</b> {callText(paths, i)}</a></th>
                <td class={css.number}>{duration(Math.round(times.selected[i]))}</td>
                <td class={css.number}>{duration(Math.round(times.rest[i]))}</td>
                <td class={css.number}>{differenceText(times.selected[i] - times.rest[i])}</td>
                <td class={classes(css.number, own > 0 && css.grew, own < 0 && css.shrank)}>{differenceText(own)}</td>
                <td class={css.number}>{t('{selected} vs. {others}', { selected: paths.selected.calls[i], others: paths.rest.calls[i] })}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {all.length > rows.length && <p class={css.hint}>{t('The first {shown} of {all} call paths.', { shown: count(rows.length), all: count(all.length) })}</p>}
    </div>
  );
}

import type { RunningQuery } from '../../api/deployment';
import { classes } from '../../shell/controls';
import { bytes, count, none, short } from '../../shell/format';
import { t } from '../../shell/text';
import { Elapsed } from './elapsed';
import css from './status.module.css';

/** What the process of this page reads from the store. `now` is the time of its answer in milliseconds since the epoch. */
export function Queries({ queries, max, now }: { queries: RunningQuery[]; max: number; now: number }) {
  return (
    <section class={css.section}>
      <h2 class={css.heading}>{t('Running queries')} <span class={css.faint}>{t('{n} of {all}', { n: count(queries.length), all: count(max) })}</span></h2>
      {queries.length > 0 && (
        <div class={css.scroll}>
          <table class={css.table}>
            <thead>
              <tr>
                <th scope="col">{t('Query')}</th><th scope="col" class={css.number}>{t('Since')}</th><th scope="col" class={css.number}>{t('Spans read')}</th>
                <th scope="col" class={classes(css.number, css.wide)}>{t('Memory')}</th><th scope="col" class={css.wide}>{t('Client')}</th>
              </tr>
            </thead>
            <tbody>
              {queries.map((q, i) => (
                <tr key={q.since + q.operation + i}>
                  <th scope="row">{q.operation.replaceAll('_', ' ')} {q.text && <code title={q.text}>{q.text}</code>}</th>
                  <td class={css.number}><Elapsed since={q.since} now={now} /></td>
                  <td class={css.number}>{q.scanned ? short(q.scanned) : none}</td>
                  <td class={classes(css.number, css.wide)}>{bytes(q.held)}</td>
                  <td class={css.wide}>{q.client || none}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

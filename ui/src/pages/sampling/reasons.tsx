import type { MissingTrace } from '../../api/deployment';
import { classes } from '../../shell/controls';
import { none, share } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { t, Text } from '../../shell/text';
import { Time } from '../../shell/time';
import { link } from '../../shell/url';
import { causeText, changeText } from './causes';
import css from './reasons.module.css';

/** Other possible reasons, which the processes know of. */
export function Causes({ m }: { m: MissingTrace }) {
  if (m.causes.length === 0) return null;
  return (
    <section class={css.section}>
      <h2 class={css.heading}>{t('Other possible reasons')}</h2>
      <ul class={css.causes}>
        {m.causes.map((c, i) => {
          const text = causeText(c, m);
          const sure = c.code === 'no_spans' || c.code === 'unknown' || c.code === 'other_service';
          return (
            <li key={i}>
              <span class={css.mark}><Mark kind={sure ? 'warn' : 'partial'} size={13} label="" /></span>
              <span><b>{text.title}</b>{c.at && c.code === 'refused' && <span class={css.faint}><Text of=", last {time}" time={<Time at={Date.parse(c.at)} precision={1} withAge />} /></span>}{text.reason && <>: <code>{text.reason}</code></>}<br /><span class={css.hint}>{text.hint}</span></span>
            </li>
          );
        })}
      </ul>
      <p class={css.hint}><a href={link({ page: 'status' })}>{t('Receivers, queues and storage')}</a></p>
    </section>
  );
}

/** What would keep such a trace, and how much more that is. */
export function Changes({ m }: { m: MissingTrace }) {
  if (m.changes.length === 0) return null;
  return (
    <section class={css.section}>
      <h2 class={css.heading}>{t('What would keep such a trace')}</h2>
      <table class={css.table}>
        <thead><tr><th scope="col">{t('Change')}</th><th scope="col" class={css.number}>{t('Share kept')}</th><th scope="col" class={css.number}>{t('Spans')}</th></tr></thead>
        <tbody>
          {m.changes.map((c, i) => (
            <tr key={i}>
              <td>{changeText(c, m)}</td>
              <td class={css.number}>{c.kept ? share(c.kept) : c.code === 'flag' || c.code === 'priority' ? t('this one') : none}</td>
              <td class={classes(css.number, (c.factor ?? 0) > 1 && css.more)}>{c.factor ? `▲ ${+c.factor.toPrecision(2)}×` : none}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

import { classes } from '../../shell/controls';
import { t } from '../../shell/text';
import { link, view } from '../../shell/url';
import css from './page-tabs.module.css';

/** Links between the pages about the program itself. */
export function PageTabs() {
  const { page } = view.value.route;
  const tab = (to: 'status' | 'sampling', text: string) => (
    <a class={classes(css.tab, page === to && css.current)} href={link({ page: to })} aria-current={page === to ? 'page' : undefined}>{text}</a>
  );
  return <nav class={css.tabs} aria-label={t('About this program')}>{tab('status', t('Status'))}{tab('sampling', t('Sampling'))}</nav>;
}

import { t, Text } from '../shell/text';
import { useTitle } from '../shell/title';
import { parseTraceRef } from '../shell/trace-id';
import { link, view } from '../shell/url';
import { Empty } from '../shell/states';
import css from './unknown.module.css';

/** An address that is no page: names it, and links to what it may have meant. */
export default function UnknownPage() {
  useTitle(t('Unknown page'));
  const { route } = view.value;
  const path = route.page === 'unknown' ? route.path : '';
  const last = path.split('/').filter(Boolean).at(-1) ?? '';
  const trace = last.length >= 8 ? parseTraceRef(last)?.trace : undefined;
  return (
    <div class={css.page}>
      <h1><Text of="No page has the address {path}" path={<code>{path}</code>} /></h1>
      <Empty title={t('These pages exist:')}>
        {trace && <a href={link({ page: 'trace', id: trace })}>{t('Trace {trace}', { trace })}</a>}
        <a href={link({ page: 'overview' })}>{t('Overview')}</a>
        <a href={link({ page: 'explore' })}>{t('Explore')}</a>
        <a href={link({ page: 'services' })}>{t('Services')}</a>
        <a href={link({ page: 'errors' })}>{t('Errors')}</a>
        <a href={link({ page: 'map' })}>{t('Map')}</a>
        <a href={link({ page: 'status' })}>{t('Status')}</a>
      </Empty>
    </div>
  );
}

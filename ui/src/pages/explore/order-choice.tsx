import { t } from '../../shell/text';
import { navigate, view } from '../../shell/url';
import css from './results.module.css';

const orders = [
  { sort: '', label: t('Newest first') },
  { sort: '-duration', label: t('Slowest first') },
  { sort: '-spans', label: t('Most spans first') },
];

/** Order of the traces on narrow screens, which have no column heads. */
export function OrderChoice() {
  const { sort } = view.value;
  return (
    <select class={css.order} aria-label={t('Order of the traces')} value={orders.some((o) => o.sort === sort) ? sort : ''} onChange={(e) => navigate({ sort: e.currentTarget.value }, { replace: true })}>
      {orders.map((o) => <option key={o.sort} value={o.sort}>{o.label}</option>)}
    </select>
  );
}

import { Choice } from '../../shell/choice';
import { t } from '../../shell/text';
import { navigate, view } from '../../shell/url';
import css from './results.module.css';

const orders = [
  { value: '', label: t('Newest first') },
  { value: '-duration', label: t('Slowest first') },
  { value: '-spans', label: t('Most spans first') },
];

/** Order of the traces on narrow screens, which have no column heads. */
export function OrderChoice() {
  const { sort } = view.value;
  return (
    <span class={css.order}>
      <Choice label={t('Order of the traces')} value={orders.some((o) => o.value === sort) ? sort : ''} options={orders} align="end" onChange={(value) => navigate({ sort: value }, { replace: true })} />
    </span>
  );
}

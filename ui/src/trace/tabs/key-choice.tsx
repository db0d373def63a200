import { Choice } from '../../shell/choice';
import { t } from '../../shell/text';
import { ownKeys } from '../model/grouping';
import css from './tools.module.css';

const labels: Record<string, () => string> = { service: () => t('service'), name: () => t('operation'), kind: () => t('kind'), status: () => t('status') };

/** Name of a key for people. */
export function keyLabel(key: string): string {
  return labels[key]?.() ?? key;
}

/** Chooses a key: what every span has, or an attribute. */
export function KeyChoice({ label, value, none, attributes, onChange }: { label: string; value: string; none?: string; attributes: string[]; onChange: (key: string) => void }) {
  const known: readonly string[] = ownKeys;
  const listed = value === '' || known.includes(value) || attributes.includes(value) ? attributes : [value, ...attributes];
  const options = [...(none === undefined ? [] : [{ value: '', label: none }]), ...[...ownKeys, ...listed].map((key) => ({ value: key, label: keyLabel(key) }))];
  return (
    <span class={css.choice}>
      <span aria-hidden="true">{label}</span>
      <Choice label={label} value={value} options={options} onChange={onChange} />
    </span>
  );
}

/** What is not loaded of the chosen keys, and why. */
export function NotLoaded({ columns, retry }: { columns: { state: string; message: string }[]; retry: () => void }) {
  const missing = columns.filter((c) => c.state !== 'loaded');
  if (missing.length === 0) return null;
  return (
    <p class={css.note} role="status">
      {missing.map((c) => c.message).join('; ')}
      {missing.some((c) => c.state === 'failed') && <button type="button" class={css.retry} onClick={retry}>{t('Retry')}</button>}
    </p>
  );
}

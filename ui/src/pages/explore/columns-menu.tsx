import { useState } from 'preact/hooks';
import type { Facets } from '../../api/types';
import { canonical, fieldLabel, fieldType } from '../../query/field';
import type { Period } from '../../query/suggest';
import { ValueInput } from '../../query/value-input';
import { Button, Check } from '../../shell/controls';
import { Popover } from '../../shell/floating';
import { t } from '../../shell/text';
import { navigate, view } from '../../shell/url';
import css from './columns-menu.module.css';

const suggested = 6;

/** Chooses the fields that results show as columns. */
export function ColumnsMenu({ fields, facets, period }: { fields: string[]; facets: Facets | undefined; period: () => Period }) {
  return (
    <Popover label={t('Columns')} align="end" class={css.surface} trigger={(props) => <Button {...props} kind="quiet" opens>{t('Columns')}</Button>}>
      {() => <Choices fields={fields} facets={facets} period={period} />}
    </Popover>
  );
}

function Choices({ fields, facets, period }: { fields: string[]; facets: Facets | undefined; period: () => Period }) {
  const [text, setText] = useState('');
  const { cols } = view.value;
  const chosen = new Set(fields.map(canonical));
  const offered = (facets?.facets ?? []).map((f) => f.field).filter((f) => fieldType(f) === 'attribute' && !chosen.has(canonical(f))).slice(0, suggested);
  const set = (field: string, on: boolean): void => navigate({ cols: on ? [...cols, field] : cols.filter((c) => canonical(c) !== canonical(field)) }, { replace: true });
  return (
    <div class={css.menu}>
      {fields.map((f) => <Choice key={f} field={f} checked bound={!cols.some((c) => canonical(c) === canonical(f))} onChange={set} />)}
      {offered.map((f) => <Choice key={f} field={f} checked={false} onChange={set} />)}
      <ValueInput field="" rest="" label={t('Another field')} placeholder={t('Another field')} value={text} period={period} onChange={setText} onDone={(name) => { if (name.trim()) set(name.trim(), true); setText(''); }} />
    </div>
  );
}

/** `bound`: the search itself selects the field. */
function Choice({ field, checked, bound, onChange }: { field: string; checked: boolean; bound?: boolean; onChange: (field: string, on: boolean) => void }) {
  return <Check checked={checked} disabled={bound} title={bound ? t('The search selects this field') : field} onChange={(on) => onChange(field, on)}><span class={css.name}>{fieldLabel(field)}</span></Check>;
}

import { useState } from 'preact/hooks';
import { Button, Input, Segmented } from '../shell/controls';
import { Choice } from '../shell/choice';
import { t } from '../shell/text';
import { operatorsFor } from './complete';
import { conditionsOn, setBounds } from './edit';
import { canonical, fieldLabel, fieldType, isDuration } from './field';
import { type Condition } from './parse';
import type { Period } from './suggest';
import { ValueInput } from './value-input';
import css from './condition-editor.module.css';

/** Edits the value of a text field: service or operation. */
export function TextEditor({ field, label, condition, rest, period, onDone }: { field: string; label: string; condition?: Condition; rest: string; period: () => Period; onDone: (op: string, value: string) => void }) {
  const [not, setNot] = useState(condition ? condition.op === '!=' || condition.op === 'not' : false);
  const [value, setValue] = useState('');
  return (
    <div class={css.editor}>
      <Segmented label={t('Comparison')} value={not ? 'not' : 'is'} segments={[{ value: 'is', label: t('is') }, { value: 'not', label: t('is not') }]} onChange={(v) => setNot(v === 'not')} />
      <ValueInput autofocus pick field={field} rest={rest} label={label} placeholder={condition?.value || label} value={value} period={period} onChange={setValue} onDone={(v) => onDone(not ? '!=' : '=', v || condition?.value || '')} />
    </div>
  );
}

const bounds = [['', ''], ['100ms', ''], ['500ms', ''], ['1s', ''], ['5s', '']];

/** Edits the bounds of the duration, of the matching span or of its trace. */
export function DurationEditor({ text, onDone }: { text: string; onDone: (text: string) => void }) {
  const ofTrace = conditionsOn(text, 'trace.duration').length > 0;
  const [field, setField] = useState<'duration' | 'trace.duration'>(ofTrace ? 'trace.duration' : 'duration');
  const bound = (sign: string): string => conditionsOn(text, ofTrace ? 'trace.duration' : 'duration').find((c) => c.op.startsWith(sign))?.value ?? '';
  const [min, setMin] = useState(bound('>'));
  const [max, setMax] = useState(bound('<'));
  const bad = (s: string): boolean => s !== '' && !isDuration(s);
  const apply = (lower: string, upper: string): void => {
    if (bad(lower) || bad(upper)) return;
    const cleared = setBounds(setBounds(text, 'duration', '', ''), 'trace.duration', '', '');
    onDone(setBounds(cleared, field, lower, upper));
  };
  return (
    <form class={css.editor} onSubmit={(e) => { e.preventDefault(); apply(min.trim(), max.trim()); }}>
      <Segmented label={t('Duration of')} value={field} segments={[{ value: 'duration', label: t('Span') }, { value: 'trace.duration', label: t('Trace') }]} onChange={setField} />
      <div class={css.bounds}>
        <Input aria-label={t('At least')} placeholder={t('at least, 500ms')} value={min} invalid={bad(min.trim())} onInput={(e) => setMin(e.currentTarget.value)} />
        <Input aria-label={t('At most')} placeholder={t('at most, 2s')} value={max} invalid={bad(max.trim())} onInput={(e) => setMax(e.currentTarget.value)} />
      </div>
      {(bad(min.trim()) || bad(max.trim())) && <p role="alert" class={css.bad}>{t('Enter a duration with its unit, such as 500ms, 1.5s or 2m.')}</p>}
      <div class={css.presets}>{bounds.map(([lower]) => <Button key={lower} kind="quiet" onClick={() => apply(lower, '')}>{lower ? `≥ ${lower}` : t('any')}</Button>)}</div>
      <Button type="submit">{t('Apply')}</Button>
    </form>
  );
}

/** Chooses a status; "" is any. */
export function StatusEditor({ value, onDone }: { value: string | undefined; onDone: (value: string) => void }) {
  return (
    <div class={css.choices}>
      {['', 'error', 'ok', 'unset'].map((v) => <Button key={v} kind="quiet" aria-pressed={v === value} onClick={() => onDone(v)}>{v || t('any')}</Button>)}
    </div>
  );
}

const opNames: Record<string, string> = {
  '=': t('is'), '!=': t('is another value than'), not: t('is not'), '=~': t('matches'), '!~': t('does not match'), '>': t('is more than'), '>=': t('is at least'), '<': t('is less than'), '<=': t('is at most'),
  contains: t('contains'), '!contains': t('does not contain'), exists: t('exists'), '!exists': t('does not exist'),
};

function opsOf(field: string): string[] {
  if (canonical(field) === 'text') return ['contains', '!contains', '=', 'not', '=~'];
  const ops = operatorsFor(field).flatMap((op) => (op === '=' ? ['=', 'not'] : op === '!=' ? [] : [op]));
  return fieldType(field) === 'attribute' ? [...ops, 'exists', '!exists'] : ops;
}

/** Chooses field, comparison and value of a condition. `text` is the search without it. */
export function ConditionEditor({ text, period, condition, onDone }: { text: string; period: () => Period; condition?: Condition; onDone: (field: string, op: string, value: string) => void }) {
  const [field, setField] = useState(condition?.name ?? '');
  const [chosen, setChosen] = useState(!!condition);
  const [op, setOp] = useState(condition?.op ?? '=');
  const [value, setValue] = useState(condition?.value ?? '');
  if (!chosen) {
    return (
      <div class={css.editor}>
        <ValueInput autofocus field="" rest={text} label={t('Field')} placeholder={t('Field or attribute')} value={field} period={period} onChange={setField} onDone={(name) => { if (!name) return; setField(searchable(name)); setChosen(true); }} />
      </div>
    );
  }
  const ops = [...new Set([...opsOf(field), op])];
  const needsValue = op !== 'exists' && op !== '!exists';
  return (
    <div class={css.editor}>
      <div class={css.head}>
        <Button kind="quiet" icon="left" label={t('Choose another field')} onClick={() => setChosen(false)} />
        <span class={css.field} title={field}>{fieldLabel(field)}</span>
        <Choice label={t('Comparison')} value={op} align="end" options={ops.map((o) => ({ value: o, label: opNames[o] }))} onChange={setOp} />
      </div>
      {needsValue && <ValueInput autofocus field={field} rest={text} label={t('Value')} placeholder={t('Value')} value={value} period={period} onChange={setValue} onDone={(v) => onDone(field, op, v)} />}
      <Button onClick={() => onDone(field, op, value)}>{t('Apply')}</Button>
    </div>
  );
}

/** A word without a dot that is not a field is an attribute. */
function searchable(name: string): string {
  return fieldType(name) === 'attribute' ? canonical(name.includes('.') ? name : '.' + name) : name;
}

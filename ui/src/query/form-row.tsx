import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { Button, classes, Segmented } from '../shell/controls';
import { Popover } from '../shell/floating';
import { Icon } from '../shell/icons';
import { lazy } from '../shell/lazy';
import { t } from '../shell/text';
import { addCondition, conditionsOf, conditionsOn, removeCondition, setCondition } from './edit';
import { canonical, fieldLabel } from './field';
import { isOn, parseQuery, type Condition, type Query } from './parse';
import type { Period } from './suggest';
import css from './form-row.module.css';

/** Milliseconds after which the editors are loaded, before anybody opens one: what the page shows comes first. */
const editorsAfter = 500;

type Editors = typeof import('./condition-editor');
type Props<K extends keyof Editors> = Parameters<Editors[K]>[0];
const ConditionEditor = lazy<Props<'ConditionEditor'>>(() => import('./condition-editor').then((m) => ({ default: m.ConditionEditor })));
const DurationEditor = lazy<Props<'DurationEditor'>>(() => import('./condition-editor').then((m) => ({ default: m.DurationEditor })));
const StatusEditor = lazy<Props<'StatusEditor'>>(() => import('./condition-editor').then((m) => ({ default: m.StatusEditor })));
const TextEditor = lazy<Props<'TextEditor'>>(() => import('./condition-editor').then((m) => ({ default: m.TextEditor })));

interface FormRowProps {
  /** The text of the query bar, which may be incomplete. */
  draft: string;
  period: () => Period;
  /** Runs a changed search. */
  onRun: (text: string) => void;
}

const standing = ['service', 'name', 'duration', 'trace.duration', 'status', 'error', 'root'];

/** The same search as chips. While the text is not complete, the chips show its last complete state. */
export function FormRow({ draft, period, onRun }: FormRowProps) {
  useEffect(() => {
    const timer = setTimeout(() => [ConditionEditor, DurationEditor, StatusEditor, TextEditor].forEach((e) => e.preload()), editorsAfter);
    return () => clearTimeout(timer);
  }, []);
  const last = useRef<Query>(parseQuery('')!);
  const parsed = useMemo(() => parseQuery(draft), [draft]);
  if (parsed) last.current = parsed;
  const q = last.current;
  const all = conditionsOf(q);
  const editor = { text: q.text, period, onRun };
  return (
    <div class={css.row}>
      {all ? <Chips conditions={all} {...editor} /> : <Custom text={q.text} label={t('custom condition')} onRemove={() => onRun('')} />}
      <Popover label={t('Add a condition')} class={css.surface} trigger={(props) => <Button {...props} kind="quiet" icon="plus" class={css.add}>{t('Filter')}</Button>}>
        {(close) => <ConditionEditor {...editor} onDone={(field, op, value) => { close(); onRun(addCondition(q.text, field, op, value)); }} />}
      </Popover>
      {all && <Scope text={q.text} onRun={onRun} />}
    </div>
  );
}

interface Editor {
  text: string;
  period: () => Period;
  onRun: (text: string) => void;
}

function Chips({ conditions, text, period, onRun }: Editor & { conditions: Condition[] }) {
  const others = conditions.filter((c) => !standing.includes(canonical(c.name)) || (isOn(c, 'root') && c.value !== 'true') || isRepeated(c, conditions));
  return (
    <>
      <TextChip field="service" label={t('service')} text={text} period={period} onRun={onRun} />
      <TextChip field="name" label={t('operation')} text={text} period={period} onRun={onRun} />
      <DurationChip text={text} onRun={onRun} />
      <StatusChip text={text} onRun={onRun} />
      {others.map((c) => <Other key={`${c.begin}-${c.end}`} condition={c} text={text} period={period} onRun={onRun} />)}
    </>
  );
}

/** The standing chips show the first condition on their field. */
function isRepeated(c: Condition, all: Condition[]): boolean {
  return (isOn(c, 'service') || isOn(c, 'name')) && all.find((x) => isOn(x, c.name)) !== c;
}

/** How an operator reads in a chip. */
function opText(op: string): string {
  return op === '=' || op === 'contains' ? '' : op === '!contains' || op === 'not' || op === '!=' ? t('not ') : op === 'exists' ? t('exists') : op === '!exists' ? t('missing') : op + ' ';
}

interface ChipButtonProps {
  name: string;
  value: string;
  title?: string;
  onRemove?: () => void;
  editor?: (close: () => void) => ComponentChildren;
}

/** A chip that opens an editor. Without a condition it says "any". */
function ChipButton({ name, value, title, onRemove, editor }: ChipButtonProps) {
  const text = <><span class={css.name}>{name}</span><span class={css.value}>{value || t('any')}</span></>;
  return (
    <span class={classes(css.chip, onRemove && css.removable)} title={title ?? (value ? `${name} ${value}` : undefined)}>
      {editor
        ? <Popover label={t('Condition: {name}', { name })} class={css.surface} trigger={(props) => <button type="button" {...props} class={css.text}>{text}{!onRemove && <Icon name="chev" size={12} />}</button>}>{editor}</Popover>
        : <span class={css.text}>{text}</span>}
      {onRemove && <button type="button" class={css.remove} aria-label={t('Remove {name}', { name })} title={t('Remove')} onClick={onRemove}><Icon name="x" size={12} /></button>}
    </span>
  );
}

function Custom({ text, label, onRemove }: { text: string; label: string; onRemove: () => void }) {
  return <ChipButton name={label} value={text} title={text} onRemove={onRemove} />;
}

function TextChip({ field, label, text, period, onRun }: Editor & { field: string; label: string }) {
  const c = conditionsOn(text, field)[0];
  const rest = c ? removeCondition(text, c) : text;
  return (
    <ChipButton
      name={label} value={c ? opText(c.op) + c.value : ''} onRemove={c && (() => onRun(rest))}
      editor={(close) => <TextEditor field={field} label={label} condition={c} rest={rest} period={period} onDone={(op, value) => { close(); onRun(c ? setCondition(text, field, op, value) : addCondition(text, field, op, value)); }} />}
    />
  );
}

function DurationChip({ text, onRun }: Omit<Editor, 'period'>) {
  const all = [...conditionsOn(text, 'duration'), ...conditionsOn(text, 'trace.duration')];
  const value = all.map((c) => `${canonical(c.name) === 'duration' ? '' : t('of the trace') + ' '}${c.op === '>=' ? '≥' : c.op === '<=' ? '≤' : c.op} ${c.value}`).join(', ');
  const clear = (): void => onRun(setCondition(setCondition(text, 'duration', '', ''), 'trace.duration', '', ''));
  return <ChipButton name={t('duration')} value={value} onRemove={value ? clear : undefined} editor={(close) => <DurationEditor text={text} onDone={(item) => { close(); onRun(item); }} />} />;
}

function StatusChip({ text, onRun }: Omit<Editor, 'period'>) {
  const c = [...conditionsOn(text, 'status'), ...conditionsOn(text, 'error')][0];
  const value = !c ? '' : isOn(c, 'error') ? (c.value === 'true' ? t('error') : t('no error')) : opText(c.op) + c.value;
  // What the editor shows as chosen; nothing for a condition such as `status != ok`.
  const status = !c ? '' : isOn(c, 'error') && c.value === 'true' ? 'error' : c.op === '=' ? c.value : undefined;
  const set = (v: string): void => {
    const rest = setCondition(setCondition(text, 'error', '', ''), 'status', '', '');
    onRun(v ? addCondition(rest, 'status', '=', v) : rest);
  };
  return <ChipButton name={t('status')} value={value} onRemove={c && (() => set(''))} editor={(close) => <StatusEditor value={status} onDone={(v) => { close(); set(v); }} />} />;
}

function Other({ condition: c, text, period, onRun }: Editor & { condition: Condition }) {
  const rest = removeCondition(text, c);
  if (!c.name) return <Custom text={text.slice(c.begin, c.end)} label={t('custom condition')} onRemove={() => onRun(rest)} />;
  return (
    <ChipButton
      name={fieldLabel(c.name)} value={opText(c.op) + c.value} onRemove={() => onRun(rest)}
      editor={(close) => <ConditionEditor text={rest} period={period} condition={c} onDone={(field, op, value) => { close(); onRun(addCondition(rest, field, op, value)); }} />}
    />
  );
}

/** Any span of a trace may match, or its root only. */
function Scope({ text, onRun }: Omit<Editor, 'period'>) {
  const root = conditionsOn(text, 'root').some((c) => c.value === 'true');
  return (
    <span class={css.scope}>
      <span class={css.scopeText}>{t('Traces where any span matches')}</span>
      <Segmented
        label={t('Spans that can match')} value={root ? 'root' : 'any'} segments={[{ value: 'any', label: t('Any span') }, { value: 'root', label: t('Root span'), title: t('Only the first span of a trace') }]}
        onChange={(v) => onRun(v === 'root' ? addCondition(text, 'root', '=', 'true') : setCondition(text, 'root', '=', ''))}
      />
    </span>
  );
}

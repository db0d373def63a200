import { useId, useState } from 'preact/hooks';
import { classes, Input } from '../shell/controls';
import { t } from '../shell/text';
import { contextAt } from './complete';
import { formatField } from './field';
import type { Period } from './suggest';
import { useSuggestions } from './use-suggestions';
import css from './value-input.module.css';

interface ValueInputProps {
  /** Name of the field whose values are offered; "" offers names of fields. */
  field: string;
  /** Conditions that limit what can match: a search, or "". */
  rest: string;
  value: string;
  label: string;
  placeholder?: string;
  period: () => Period;
  onChange: (value: string) => void;
  /** Enter, or a click on a value. */
  onDone: (value: string) => void;
  autofocus?: boolean;
  /** A value is one of the list, as names of fields are: Enter takes the first that contains the text. */
  pick?: boolean;
}

/** A field with the values that can match below it. */
export function ValueInput({ field, rest, value, label, placeholder, period, onChange, onDone, autofocus, pick }: ValueInputProps) {
  const [active, setActive] = useState(-1);
  const id = useId();
  const before = rest ? rest.replace(/\s*\}\s*$/, ' && ') : '{ ';
  const text = before + (field ? `${formatField(field)} = "${value.replace(/["\\\n]/g, '')}` : value);
  const found = useSuggestions(text, text.length, true, period);
  const wanted = contextAt(text, text.length).kind;
  const list = found && found.context.kind === wanted ? found.list : [];
  const plain = (i: number): string => list[i].text;
  // A part of a name stands for the first one with it; values of which only some are listed are meant as they are.
  const entered = (): string => {
    if (active >= 0 && active < list.length) return plain(active);
    if ((field !== '' && !pick) || value === '' || list.some((s) => s.text === value)) return value;
    // The list may still be that of an earlier text.
    return list.find((s) => s.text.toLowerCase().includes(value.toLowerCase()))?.text ?? value;
  };
  const key = (e: KeyboardEvent): void => {
    if (e.key === 'ArrowDown' && list.length) setActive((active + 1) % list.length);
    else if (e.key === 'ArrowUp' && list.length) setActive((active <= 0 ? list.length : active) - 1);
    else if (e.key === 'Enter' && !e.isComposing) onDone(entered());
    else return;
    e.preventDefault();
  };
  return (
    <div class={css.root}>
      <Input
        role="combobox" aria-label={label} aria-autocomplete="list" aria-expanded={list.length > 0} aria-controls={`${id}list`}
        aria-activedescendant={active >= 0 ? `${id}option${active}` : undefined} placeholder={placeholder} value={value} {...(autofocus ? { autofocus: true } : {})}
        onInput={(e) => { setActive(-1); onChange(e.currentTarget.value); }} onKeyDown={key}
      />
      <div id={`${id}list`} role="listbox" aria-label={label} class={css.list} onPointerDown={(e) => e.preventDefault()}>
        {list.map((s, i) => (
          <div key={s.text} id={`${id}option${i}`} role="option" aria-selected={i === active} class={classes(css.option, i === active && css.on)} title={s.text} onClick={() => onDone(plain(i))}>
            {s.text || t('(empty)')}
          </div>
        ))}
        {found && list.length === 0 && <p class={css.none}>{field ? t('No value contains this.') : t('No field contains this.')}</p>}
      </div>
    </div>
  );
}

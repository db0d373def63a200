import { Button, classes } from './controls';
import { Menu } from './floating';
import { t } from './text';
import css from './choice.module.css';

/** One value of a choice. */
export interface Option {
  value: string;
  label: string;
}

/** Chooses one of several values: a button with the current one, which opens the list of all. */
export function Choice({ label, value, options, align, onChange, class: extra }: { label: string; value: string; options: Option[]; align?: 'start' | 'end'; onChange: (value: string) => void; class?: string }) {
  const current = options.find((o) => o.value === value)?.label ?? value;
  return (
    <Menu
      label={label} align={align} items={options.map((o) => ({ label: o.label, checked: o.value === value, onSelect: () => onChange(o.value) }))}
      trigger={(p) => <Button {...p} opens class={classes(css.choice, extra)} aria-label={t('{label}: {value}', { label, value: current })} title={current}><span class={css.current}>{current}</span></Button>}
    />
  );
}

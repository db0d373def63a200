import type { ButtonHTMLAttributes, ComponentChildren, HTMLAttributes, InputHTMLAttributes, Ref } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Icon, type IconName } from './icons';
import { t } from './text';
import css from './controls.module.css';

/** Joins class names; leaves out what is not set. */
export function classes(...names: (string | false | null | undefined)[]): string {
  return names.filter(Boolean).join(' ');
}

type ButtonAttributes = Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'icon' | 'label' | 'size'>;

/** Properties of a button; further attributes go to the element. */
export interface ButtonProps extends ButtonAttributes {
  /** Primary: at most one for each view. */
  kind?: 'primary' | 'default' | 'quiet';
  icon?: IconName;
  /** Name and tooltip of a button without text. */
  label?: string;
  /** Shows a chevron: the button opens something. */
  opens?: boolean;
  children?: ComponentChildren;
}

/** A button. Without children it is an icon button and needs `label`. */
export function Button({ kind = 'default', icon, label, opens, children, class: extra, ...rest }: ButtonProps) {
  const iconOnly = children === undefined;
  const on = rest['aria-pressed'] === true || rest['aria-pressed'] === 'true';
  return (
    <button
      type="button"
      {...rest}
      class={classes(css.button, kind === 'primary' ? css.primary : kind === 'quiet' && css.quiet, iconOnly && css.iconOnly, on && css.on, typeof extra === 'string' && extra)}
      aria-label={rest['aria-label'] ?? (iconOnly ? label : undefined)}
      title={rest.title ?? label}
    >
      {icon && <Icon name={icon} />}
      {children}
      {opens && <span class={css.chevron}><Icon name="chev" /></span>}
    </button>
  );
}

/** A choice of a segmented control. */
export interface Segment<T extends string> {
  value: T;
  label: string;
  title?: string;
}

/** Two or three exclusive views: a radio group. */
export function Segmented<T extends string>({ label, value, segments, onChange }: { label: string; value: T; segments: Segment<T>[]; onChange: (value: T) => void }) {
  const name = useId();
  return (
    <span class={css.segmented} role="radiogroup" aria-label={label}>
      {segments.map((s) => (
        <label key={s.value} class={classes(css.segment, s.value === value && css.chosen)} title={s.title}>
          <input class={css.hiddenInput} type="radio" name={name} checked={s.value === value} onChange={() => onChange(s.value)} />
          {s.label}
        </label>
      ))}
    </span>
  );
}

/** A check box with its label. */
export function Check({ checked, onChange, children, disabled, title }: { checked: boolean; onChange: (checked: boolean) => void; children?: ComponentChildren; disabled?: boolean; title?: string }) {
  return (
    <label class={css.checkLabel} title={title}>
      <input class={css.hiddenInput} type="checkbox" checked={checked} disabled={disabled} onChange={(e) => onChange(e.currentTarget.checked)} />
      <span class={css.check} aria-hidden="true">{checked && <Icon name="check" size={12} />}</span>
      {children}
    </label>
  );
}

/** One condition of a query: the text edits it, the cross removes it. */
export function Chip({ label, children, onEdit, onRemove, title }: { label?: string; children: ComponentChildren; onEdit?: () => void; onRemove?: () => void; title?: string }) {
  const text = <>{label && <span class={css.chipName}>{label}</span>}<span>{children}</span></>;
  return (
    <span class={css.chip} title={title}>
      {onEdit ? <button type="button" class={css.chipText} onClick={onEdit}>{text}</button> : <span class={css.chipText}>{text}</span>}
      {onRemove && <button type="button" class={css.chipRemove} aria-label={t('Remove {name}', { name: label ?? t('condition') })} title={t('Remove')} onClick={onRemove}><Icon name="x" size={14} /></button>}
    </span>
  );
}

const badges = { plain: '', error: css['badge-error'], warn: css['badge-warn'], ok: css['badge-ok'], accent: css['badge-accent'] };

/** A count or state inside a row. */
export function Badge({ kind = 'plain', children, title }: { kind?: keyof typeof badges; children: ComponentChildren; title?: string }) {
  return <span class={classes(css.badge, badges[kind])} title={title}>{children}</span>;
}

/** A tab: `count` is printed after the label. */
export interface Tab<T extends string> {
  id: T;
  label: string;
  count?: string;
}

/** A row of tabs: one tab stop, arrow keys select. The content is a `<TabPanel>` with the same `name`. */
export function Tabs<T extends string>({ label, name, tabs, selected, onSelect, end }: { label: string; name: string; tabs: Tab<T>[]; selected: T; onSelect: (id: T) => void; end?: ComponentChildren }) {
  const list = useRef<HTMLDivElement>(null);
  const at = tabs.findIndex((item) => item.id === selected);
  // On small screens, scrolls the selected tab into view, but not the page as scrollIntoView would.
  useEffect(() => {
    const { children, clientWidth, scrollLeft } = list.current!;
    const tab = children[at] as HTMLElement | undefined;
    if (tab) list.current!.scrollLeft = Math.min(tab.offsetLeft, Math.max(scrollLeft, tab.offsetLeft + tab.offsetWidth - clientWidth));
  }, [at, tabs[at]?.count]);
  const key = (e: KeyboardEvent): void => {
    const next = rove(e.key, at, tabs.length);
    if (next < 0) return;
    e.preventDefault();
    onSelect(tabs[next].id);
    (list.current!.children[next] as HTMLElement).focus();
  };
  return (
    <div class={css.tabs}>
      <div ref={list} class={css.tabList} role="tablist" aria-label={label} onKeyDown={key}>
        {tabs.map((item) => (
          <button
            key={item.id} type="button" role="tab" id={`${name}-tab-${item.id}`} aria-controls={`${name}-panel`} class={css.tab}
            aria-selected={item.id === selected} tabIndex={item.id === selected ? 0 : -1} onClick={() => onSelect(item.id)}
          >
            {item.label}{item.count && <span class={css.tabCount}>{item.count}</span>}
          </button>
        ))}
      </div>
      {end && <div class={css.tabsEnd}>{end}</div>}
    </div>
  );
}

/** The content of the selected tab. */
export function TabPanel({ name, selected, children, class: extra }: { name: string; selected: string; children: ComponentChildren; class?: string }) {
  return <div role="tabpanel" id={`${name}-panel`} aria-labelledby={`${name}-tab-${selected}`} class={extra}>{children}</div>;
}

/** Index after an arrow key, Home or End in a list of `n` items; -1 for other keys. */
export function rove(key: string, index: number, n: number): number {
  switch (key) {
    case 'ArrowRight': case 'ArrowDown': return (index + 1) % n;
    case 'ArrowLeft': case 'ArrowUp': return (index - 1 + n) % n;
    case 'Home': return 0;
    case 'End': return n - 1;
  }
  return -1;
}

/** Properties of a text field; further attributes go to the element. */
export interface InputProps extends Omit<HTMLAttributes<HTMLInputElement>, 'icon' | 'size' | 'label' | 'role'> {
  type?: 'text' | 'password' | 'search';
  role?: 'combobox' | 'searchbox';
  value?: string;
  name?: string;
  placeholder?: string;
  autocomplete?: string;
  icon?: IconName;
  /** Stands at its end: a hint, a count, a key. */
  after?: ComponentChildren;
  invalid?: boolean;
  inputRef?: Ref<HTMLInputElement>;
}

/** A text field. */
export function Input({ icon, after, invalid, inputRef, class: extra, ...rest }: InputProps) {
  const attributes = {
    type: 'text', autocomplete: 'off', spellcheck: false, ...rest, ref: inputRef, class: css.input, 'aria-invalid': invalid ? 'true' : undefined,
  } as InputHTMLAttributes<HTMLInputElement>;
  return (
    <span class={classes(css.field, invalid && css.invalid, typeof extra === 'string' && extra)}>
      {icon && <Icon name={icon} />}
      <input {...attributes} />
      {after}
    </span>
  );
}

import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { classes, rove } from './controls';
import css from './floating.module.css';

/** Attributes for the button that opens a popover or menu. */
export interface TriggerProps {
  onClick: () => void;
  'aria-expanded': boolean;
  'aria-haspopup': 'dialog' | 'menu';
}

interface FloatingProps {
  /** Name of the surface for assistive technology. */
  label: string;
  trigger: (props: TriggerProps) => ComponentChildren;
  /** Which edges of trigger and surface are aligned. */
  align?: 'start' | 'end';
  class?: string;
}

/** A surface beside its trigger. Esc or a click elsewhere closes it, and focus returns to the trigger. */
export function Popover({ label, trigger, align = 'start', class: extra, children, role = 'dialog' }: FloatingProps & { children: (close: () => void) => ComponentChildren; role?: 'dialog' | 'menu' }) {
  const [open, setOpen] = useState(false);
  const anchor = useRef<HTMLSpanElement>(null);
  const close = (): void => {
    setOpen(false);
    anchor.current?.querySelector<HTMLElement>('button, a')?.focus();
  };
  return (
    <span ref={anchor} class={css.anchor}>
      {trigger({ onClick: () => setOpen(!open), 'aria-expanded': open, 'aria-haspopup': role })}
      {open && <Surface anchor={anchor} align={align} label={label} role={role} class={extra} close={close} dismiss={() => setOpen(false)}>{children(close)}</Surface>}
    </span>
  );
}

interface SurfaceProps {
  anchor: { current: HTMLElement | null };
  align: 'start' | 'end';
  label: string;
  role: 'dialog' | 'menu';
  class?: string;
  /** Closes and returns the focus. */
  close: () => void;
  /** Closes and leaves the focus where the user put it. */
  dismiss: () => void;
  children: ComponentChildren;
}

/** What gets the focus of an opened surface: the current choice, else the first control. */
const firstFocus = ['[autofocus]', '[aria-pressed="true"]', '[aria-checked="true"]', 'input, button, a, select'];

function Surface({ anchor, align, label, role, class: extra, close, dismiss, children }: SurfaceProps) {
  const surface = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ left: '0', top: '0' });
  useLayoutEffect(() => {
    const put = (): void => setPlace(position(anchor.current!.getBoundingClientRect(), surface.current!.getBoundingClientRect(), align));
    surface.current!.showPopover();
    put();
    const size = new ResizeObserver(put);
    size.observe(surface.current!);
    addEventListener('scroll', put, true);
    addEventListener('resize', put);
    return () => {
      size.disconnect();
      removeEventListener('scroll', put, true);
      removeEventListener('resize', put);
    };
  }, []);
  useLayoutEffect(() => {
    const first = firstFocus.map((s) => surface.current!.querySelector<HTMLElement>(s)).find((e) => e !== null);
    (first ?? surface.current!).focus();
    const outside = (e: PointerEvent): void => {
      if (!anchor.current?.contains(e.target as Node)) dismiss();
    };
    addEventListener('pointerdown', outside, true);
    return () => removeEventListener('pointerdown', outside, true);
  }, []);
  const key = (e: KeyboardEvent): void => {
    if (e.key !== 'Escape') return;
    e.stopPropagation();
    close();
  };
  const leave = (e: FocusEvent): void => {
    if (e.relatedTarget && !anchor.current?.contains(e.relatedTarget as Node)) dismiss();
  };
  return (
    <div ref={surface} popover="manual" role={role} aria-label={label} tabIndex={-1} class={classes(css.surface, extra)} style={place} onKeyDown={key} onFocusOut={leave}>
      {children}
    </div>
  );
}

/** Below the anchor, or above it where there is more space; always inside the window. */
function position(anchor: DOMRect, surface: DOMRect, align: 'start' | 'end'): { left: string; top: string } {
  const gap = 4;
  const edge = 8;
  const wanted = align === 'start' ? anchor.left : anchor.right - surface.width;
  const left = Math.max(edge, Math.min(wanted, innerWidth - surface.width - edge));
  const below = anchor.bottom + gap;
  const fits = below + surface.height <= innerHeight - edge || anchor.top < innerHeight - anchor.bottom;
  const top = fits ? below : Math.max(edge, anchor.top - gap - surface.height);
  return { left: `${left}px`, top: `${top}px` };
}

/** An action of a menu. */
export interface MenuItem {
  label: string;
  onSelect: () => void;
  /** Keyboard shortcut that is printed beside the label. */
  keys?: string;
  /** For a choice: whether it is the current one. */
  checked?: boolean;
  disabled?: boolean;
  /** The first of a group of choices: a line stands above it. */
  group?: boolean;
  /** Why it is disabled, or what it does. */
  title?: string;
}

/** A list of actions: arrow keys move, Enter selects, letters jump. */
export function Menu({ items, ...rest }: FloatingProps & { items: MenuItem[] }) {
  return <Popover {...rest} role="menu">{(close) => <MenuItems items={items} close={close} />}</Popover>;
}

function MenuItems({ items, close }: { items: MenuItem[]; close: () => void }) {
  const list = useRef<HTMLDivElement>(null);
  const key = (e: KeyboardEvent): void => {
    const buttons = [...list.current!.querySelectorAll<HTMLButtonElement>('button')];
    const current = buttons.indexOf(document.activeElement as HTMLButtonElement);
    let next = rove(e.key, current, buttons.length);
    if (next < 0 && e.key.length === 1) next = buttons.findIndex((b) => b.textContent?.toLowerCase().startsWith(e.key.toLowerCase()));
    if (e.key === 'Tab') close();
    if (next < 0) return;
    e.preventDefault();
    buttons[next].focus();
  };
  return (
    <div ref={list} role="presentation" class={css.menu} onKeyDown={key}>
      {items.map((item) => (
        <button
          key={item.label} type="button" class={classes(css.item, item.group && css.group)} tabIndex={-1} title={item.title} aria-disabled={item.disabled ? 'true' : undefined}
          {...(item.checked === undefined ? { role: 'menuitem' } : { role: 'menuitemradio', 'aria-checked': item.checked })}
          onClick={() => { if (!item.disabled) { close(); item.onSelect(); } }}
        >
          <span class={css.label}>{item.label}</span>
          {item.keys && <kbd>{item.keys}</kbd>}
          {item.checked && <span aria-hidden="true" class={css.tick}>✓</span>}
        </button>
      ))}
    </div>
  );
}

/** A tooltip at a point of its positioned parent, for marks of a chart. Other tooltips are `title` attributes. */
export function Tip({ x, y, children }: { x: number; y: number; children: ComponentChildren }) {
  return <div role="tooltip" class={css.tip} style={{ left: `${x}px`, top: `${y}px` }}>{children}</div>;
}

import type { ComponentChildren } from 'preact';
import { t } from './text';
import css from './icons.module.css';

const paths = {
  search: <><circle cx="7" cy="7" r="4.25" /><path d="m10.2 10.2 3.3 3.3" /></>,
  chev: <path d="m4.5 6.5 3.5 3.5 3.5-3.5" />,
  right: <path d="m6.5 4.5 3.5 3.5-3.5 3.5" />,
  left: <path d="M9.5 4.5 6 8l3.5 3.5" />,
  x: <path d="m4.5 4.5 7 7m0-7-7 7" />,
  plus: <path d="M8 3.5v9M3.5 8h9" />,
  minus: <path d="M3.5 8h9" />,
  check: <path d="m3.5 8.5 3 3 6-7" />,
  copy: <><rect x="5.5" y="5.5" width="8" height="8" rx="1.5" /><path d="M10.5 3.5v-1h-8v8h1" /></>,
  clock: <><circle cx="8" cy="8" r="5.5" /><path d="M8 5v3.2l2 1.3" /></>,
  theme: <><circle cx="8" cy="8" r="5.5" /><path d="M8 2.5v11A5.5 5.5 0 0 0 8 2.5Z" fill="currentColor" /></>,
  help: <><circle cx="8" cy="8" r="5.5" /><path d="M6.4 6.4A1.7 1.7 0 1 1 8.6 8c-.4.2-.6.5-.6 1M8 11v.1" /></>,
  more: <path d="M3.5 8h.01M8 8h.01M12.5 8h.01" stroke-width="2" />,
  group: <path d="M2.5 3.5h6M2.5 12.5h6M5.5 8h8M2.5 3.5v9M2.5 8h3" />,
  filter: <path d="M2.5 4h11M4.5 8h7M6.5 12h3" />,
  compare: <path d="M2.5 4.5h8M2.5 7h5M5.5 10h8M8.5 12.5h5" />,
  play: <path d="M5 3.5v9l7-4.5Z" />,
  pause: <path d="M5.5 3.5v9m5-9v9" />,
  up: <path d="M8 12.5v-9m-3.5 3.5L8 3.5 11.5 7" />,
  down: <path d="M8 3.5v9m3.5-3.5L8 12.5 4.5 9" />,
  link: <path d="M6.5 9.5 9.5 6.5M7 4.5l1.2-1.2a2.9 2.9 0 0 1 4.1 4.1L11 8.7M5 7.3 3.7 8.6a2.9 2.9 0 0 0 4.1 4.1L9 11.5" />,
  pin: <path d="M6 2.5h4l-.5 4 2 2.5h-7l2-2.5Zm2 6.5v4.5" />,
  refresh: <path d="M13 8a5 5 0 1 1-1.5-3.6M13 2.5v2.6h-2.6" />,
  archive: <path d="M2.5 3.5h11v3h-11zM3.5 6.5v6h9v-6M6.5 9h3" />,
  expand: <path d="M5 3 8 6l3-3M5 13l3-3 3 3" />,
} satisfies Record<string, ComponentChildren>;

/** Name of an icon. */
export type IconName = keyof typeof paths;

/** A decorative icon in the color of the text. Alone in a control, it needs a name and a title on the control. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.4" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      {paths[name]}
    </svg>
  );
}

const marks = {
  error: {
    label: t('error'),
    class: css.error,
    shape: <><path d="M4.5 1h5L13 4.5v5L9.5 13h-5L1 9.5v-5Z" fill="currentColor" /><path d="M7 3.8v3.9" stroke="var(--bg)" stroke-width="1.6" stroke-linecap="round" /><circle cx="7" cy="10" r=".95" fill="var(--bg)" /></>,
  },
  errorChild: {
    label: t('error in a child'),
    class: css.errorChild,
    shape: <><path d="M4.8 1.7h4.4l3.1 3.1v4.4l-3.1 3.1H4.8L1.7 9.2V4.8Z" fill="none" stroke="currentColor" stroke-width="1.3" /><path d="M7 4.3v3.2" stroke="currentColor" stroke-width="1.4" stroke-linecap="round" /><circle cx="7" cy="9.7" r=".8" fill="currentColor" /></>,
  },
  warn: {
    label: t('warning'),
    class: css.warn,
    shape: <><path d="M7 1.3 13.3 12.5H.7Z" fill="currentColor" /><path d="M7 5.2v3.4" stroke="var(--bg)" stroke-width="1.5" stroke-linecap="round" /><circle cx="7" cy="10.6" r=".85" fill="var(--bg)" /></>,
  },
  ok: {
    label: t('ok'),
    class: css.ok,
    shape: <g fill="none" stroke="currentColor" stroke-width="1.4" stroke-linecap="round" stroke-linejoin="round"><circle cx="7" cy="7" r="5.3" /><path d="m4.7 7.2 1.7 1.7 3-3.4" /></g>,
  },
  partial: {
    label: t('partial'),
    class: css.partial,
    shape: <><circle cx="7" cy="7" r="5.3" fill="none" stroke="currentColor" stroke-width="1.4" /><path d="M7 1.7a5.3 5.3 0 0 1 0 10.6Z" fill="currentColor" /></>,
  },
} satisfies Record<string, { label: string; class: string; shape: ComponentChildren }>;

/** Kind of a status mark. */
export type MarkKind = keyof typeof marks;

/** A status mark: its shape has a meaning without its color. `label=""` makes it decorative, where a word beside it says the same. */
export function Mark({ kind, size = 14, label = marks[kind].label }: { kind: MarkKind; size?: number; label?: string }) {
  const named = label ? { role: 'img' as const, 'aria-label': label } : { 'aria-hidden': 'true' as const };
  return <svg class={marks[kind].class} width={size} height={size} viewBox="0 0 14 14" {...named}>{marks[kind].shape}</svg>;
}

/** The mark of the program. */
export function Logo() {
  return (
    <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true">
      <rect x="1" y="3" width="16" height="3" rx="1" fill="var(--text)" />
      <rect x="4" y="7.5" width="9" height="3" rx="1" fill="var(--accent)" />
      <rect x="8" y="12" width="7" height="3" rx="1" fill="var(--text)" opacity=".55" />
    </svg>
  );
}

import { signal } from '@preact/signals';

/** Text of the live region of the page, which the shell shows to assistive technology. */
export const announcement = signal('');

/** Announces a result to users of assistive technology: counts, ends of long work. The same text can be announced again. */
export function announce(text: string): void {
  announcement.value = announcement.peek() === text ? text + '\u00a0' : text;
}

import { useRef, useState } from 'preact/hooks';
import { useKeys } from '../../shell/keys';
import { t } from '../../shell/text';
import { navigate, parse } from '../../shell/url';

/** Makes the rows of a table one tab stop: arrow keys, j and k move, Enter and a click open the URL of the row, and the space bar checks it. */
export function useRows(n: number, href: (i: number) => string, check?: (i: number) => void) {
  const [at, setAt] = useState(0);
  const body = useRef<HTMLTableSectionElement>(null);
  const current = Math.min(at, n - 1);
  const go = (i: number): void => {
    const next = Math.max(0, Math.min(n - 1, i));
    setAt(next);
    (body.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  const open = (i: number): void => navigate(parse(new URL(href(i), location.href)));
  const inside = (): boolean => !!body.current?.contains(document.activeElement);
  useKeys(t('Results'), [
    { keys: ['j', 'ArrowDown'], label: t('Next row'), run: (e) => (e.key === 'ArrowDown' && !inside() ? false : go(inside() ? current + 1 : current)) },
    { keys: ['k', 'ArrowUp'], label: t('Previous row'), run: (e) => (e.key === 'ArrowUp' && !inside() ? false : go(inside() ? current - 1 : current)) },
    { keys: ['Enter'], label: t('Open the row') },
  ]);
  const key = (e: KeyboardEvent): void => {
    if ((e.target as Element).tagName !== 'TR') return;
    if (e.key === 'Enter') open(current);
    else if (e.key === 'Home') go(0);
    else if (e.key === 'End') go(n - 1);
    else if (e.key === ' ' && check) check(current);
    else return;
    e.preventDefault();
  };
  return {
    body: { ref: body, onKeyDown: key },
    row: (i: number) => ({
      tabIndex: i === current ? 0 : -1,
      onFocus: () => setAt(i),
      onClick: (e: MouseEvent) => {
        if (e.defaultPrevented || (e.target as Element).closest('a, label') || getSelection()?.toString()) return;
        if (e.ctrlKey || e.metaKey) window.open(href(i), '_blank', 'noopener');
        else open(i);
      },
    }),
  };
}

import { useState } from 'preact/hooks';
import { count } from '../../shell/format';
import type { Token } from './pretty';
import css from './detail.module.css';

/** Lines and characters shown before the rest is unfolded. */
const maxLines = 12;
const maxText = 300;

/** Formatted code; long code is folded. */
export function Code({ tokens, label }: { tokens: Token[]; label: string }) {
  const [open, setOpen] = useState(false);
  const { shown, lines } = open ? { shown: tokens, lines: 0 } : fold(tokens);
  return (
    <div class={css.code}>
      <pre tabIndex={0} role="region" aria-label={label}>{shown.map((t) => (t.kind ? <span class={css[t.kind]}>{t.text}</span> : t.text))}</pre>
      {lines > maxLines && <More onClick={() => setOpen(true)}>{count(lines - maxLines)} more lines</More>}
    </div>
  );
}

/** The first lines, and the number of all lines. */
function fold(tokens: Token[]): { shown: Token[]; lines: number } {
  let lines = 1;
  let cut = tokens.length;
  tokens.forEach((t, i) => {
    lines += t.text.split('\n').length - 1;
    if (lines > maxLines && cut === tokens.length) cut = i;
  });
  return { shown: tokens.slice(0, cut), lines };
}

/** A text; a long one is folded. */
export function LongText({ text }: { text: string }) {
  const [open, setOpen] = useState(false);
  if (open || text.length <= maxText) return <>{text}</>;
  return <>{text.slice(0, maxText)}… <More onClick={() => setOpen(true)}>Show all {count(text.length)} characters</More></>;
}

/** Unfolds the rest. */
export function More({ onClick, children }: { onClick: () => void; children: preact.ComponentChildren }) {
  return <button type="button" class={css.more} onClick={onClick}>{children}</button>;
}

import { useState } from 'preact/hooks';
import { count } from '../../shell/format';
import { t } from '../../shell/text';
import type { Token } from './pretty';
import css from './code.module.css';

/** Lines and characters shown before the rest is unfolded. */
const maxLines = 12;
const maxText = 300;

const kinds = { key: css.key, string: css.string, number: css.number, operator: css.operator };

/** Formatted code; long code is folded. */
export function Code({ tokens, label }: { tokens: Token[]; label: string }) {
  const [open, setOpen] = useState(false);
  const { shown, lines } = open ? { shown: tokens, lines: 0 } : fold(tokens);
  return (
    <div class={css.code}>
      <pre tabIndex={0} role="region" aria-label={label}>{shown.map((item) => (item.kind ? <span class={kinds[item.kind]}>{item.text}</span> : item.text))}</pre>
      {lines > maxLines && <More onClick={() => setOpen(true)}>{t('{maxLines} more lines', { maxLines: count(lines - maxLines) })}</More>}
    </div>
  );
}

/** The first lines, and the number of all lines. */
function fold(tokens: Token[]): { shown: Token[]; lines: number } {
  let lines = 1;
  let cut = tokens.length;
  tokens.forEach((item, i) => {
    lines += item.text.split('\n').length - 1;
    if (lines > maxLines && cut === tokens.length) cut = i;
  });
  return { shown: tokens.slice(0, cut), lines };
}

/** A text; a long one is folded. */
export function LongText({ text }: { text: string }) {
  const [open, setOpen] = useState(false);
  if (open || text.length <= maxText) return <>{text}</>;
  return <>{text.slice(0, maxText)}… <More onClick={() => setOpen(true)}>{t('Show all {text} characters', { text: count(text.length) })}</More></>;
}

/** Unfolds the rest. */
export function More({ onClick, children }: { onClick: () => void; children: preact.ComponentChildren }) {
  return <button type="button" class={css.more} onClick={onClick}>{children}</button>;
}

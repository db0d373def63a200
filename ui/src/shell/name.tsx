import { classes } from './controls';
import { cutAt } from './cut';
import css from './name.module.css';

/** A name in one line. Where it is too long, its middle is left out: `cut` is the index from which the end stays, see `cutsOf`. The whole name is its tooltip, and is copied. */
export function Name({ text, cut = cutAt(text), title = text, class: extra }: { text: string; cut?: number; title?: string; class?: string }) {
  if (cut === 0) return <span class={classes(css.whole, extra)} title={title || undefined}>{text}</span>;
  return <span class={classes(css.name, extra)} data-head={text.slice(0, cut)} data-tail={text.slice(cut)} title={title || undefined}><span class={css.text}>{text}</span></span>;
}

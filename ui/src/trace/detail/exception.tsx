import { useState } from 'preact/hooks';
import type { Attribute } from '../../api/types';
import { t } from '../../shell/text';
import { More } from './code';
import { parseStack, repeatsMessage } from './stack';
import css from './code.module.css';

/** Frames shown before the rest is unfolded. */
const maxFrames = 4;

/** What an exception event says: type, message and stack trace. */
export function Exception({ attributes }: { attributes: Attribute[] }) {
  const [open, setOpen] = useState(false);
  const value = (key: string): string => attributes.find((a) => a.key === 'exception.' + key)?.value ?? '';
  const [type, message] = [value('type'), value('message')];
  const { head, frames } = parseStack(value('stacktrace'));
  const shown = open ? frames : frames.slice(0, maxFrames);
  const title = repeatsMessage(head, type, message) ? [] : head;
  return (
    <div class={css.exception}>
      <div class={css.exceptionType}>{type || t('Exception')}</div>
      {message && <div class={css.message}>{message}</div>}
      {(title.length > 0 || frames.length > 0) && (
        <pre tabIndex={0} role="region" aria-label={t('Stack trace')}>
          {title.slice(0, open ? undefined : maxFrames).map((line) => <span>{line}</span>)}
          {shown.map((f) => <span class={f.library ? css.library : undefined}>{f.text}</span>)}
        </pre>
      )}
      {frames.length > shown.length && <More onClick={() => setOpen(true)}>{t('{shown} more frames', { shown: frames.length - shown.length })}</More>}
    </div>
  );
}

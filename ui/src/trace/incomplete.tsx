import { Button } from '../shell/controls';
import { Popover } from '../shell/floating';
import { count } from '../shell/format';
import { Mark } from '../shell/icons';
import { t, Text, tn } from '../shell/text';
import type { Facts } from './model/types';
import css from './header.module.css';

/** Says that spans are missing, and on request why that can be. Nothing if the trace is complete. */
export function Incomplete({ facts, spans, show }: { facts: Facts; spans: number; show: () => void }) {
  const { orphans, causes, cut, messages } = facts;
  if (orphans.length === 0 && !cut && messages.length === 0) return null;
  const text = cut ? tn(spans, 'cut after {spans} span', 'cut after {spans} spans', { spans: count(spans) }) : orphans.length > 0 ? tn(orphans.length, 'incomplete: {orphans} span lacks its parent', 'incomplete: {orphans} spans lack their parent', { orphans: count(orphans.length) }) : t('incomplete');
  return (
    <Popover label={t('Why the trace is incomplete')} trigger={(p) => <button type="button" class={css.incomplete} {...p}><Mark kind="warn" size={13} label="" />{text}</button>}>
      {(close) => (
        <div class={css.causes}>
          <p><Text of="{cut} Durations and the critical path cover only the spans shown." cut={<b>{cut ? t('The trace is too large to show in full.') : t('Spans of this trace are missing.')}</b>} /></p>
          {causes.length > 0 && <p>{t('Possible causes, most likely first:')}</p>}
          <ol>{causes.map((c) => <li key={c.kind}>{c.text}</li>)}</ol>
          {messages.map((m) => <p key={m} class={css.message}>{m}</p>)}
          {orphans.length > 0 && <Button onClick={() => { close(); show(); }}>{t('Go to the first span without a parent')}</Button>}
        </div>
      )}
    </Popover>
  );
}

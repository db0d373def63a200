import { useState } from 'preact/hooks';
import { Icon } from '../shell/icons';
import { t } from '../shell/text';
import { link, type Route } from '../shell/url';
import css from './pick.module.css';

/** Checked traces of a list: the last two. */
export function useChecks(traces: { traceID: string }[]): { checked: string[]; check: (traceID: string) => void } {
  const [ids, setIDs] = useState<string[]>([]);
  const checked = ids.filter((id) => traces.some((trace) => trace.traceID === id));
  const check = (id: string): void => setIDs(checked.includes(id) ? checked.filter((x) => x !== id) : [...checked.slice(-1), id]);
  return { checked, check };
}

/** The check box of a row. The space bar checks the row with the focus, so that it is no tab stop of its own. */
export function Pick({ name, checked, onCheck }: { name: string; checked: boolean; onCheck: () => void }) {
  return (
    <label class={css.pick} title={t('Select for comparison (Space)')}>
      <input type="checkbox" tabIndex={-1} checked={checked} aria-label={t('Compare {trace}', { trace: name })} onChange={onCheck} />
    </label>
  );
}

/** Compares two checked traces. One alone is compared with a typical trace, if `alone` says where. */
export function CompareLink({ checked, pair, alone }: { checked: string[]; pair: (a: string, b: string) => Route; alone?: string }) {
  const [a, b = alone] = checked;
  if (a === undefined || b === undefined) return null;
  return <a class={css.compare} href={link(pair(a, b))}><Icon name="compare" />{checked.length === 1 ? t('Compare with typical') : t('Compare')}</a>;
}

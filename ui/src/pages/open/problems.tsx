import { count } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { t } from '../../shell/text';
import { content } from './files';
import css from './open.module.css';

const shown = 20;

/** Files of the last choice that were not read in full, and why. */
export function Problems() {
  const list = content.value.problems;
  if (list.length === 0) return null;
  return (
    <div role="alert">
      <ul class={css.problems} aria-label={t('Files that were not read in full')}>
        {list.slice(0, shown).map((p, i) => (
          <li key={i}><Mark kind="error" label="" /><span>{p.file && <><b>{p.file}</b>: </>}{p.text}</span></li>
        ))}
        {list.length > shown && <li>{t('{shown} more.', { shown: count(list.length - shown) })}</li>}
      </ul>
    </div>
  );
}

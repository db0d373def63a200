import { useRef } from 'preact/hooks';
import type { AttributeLine, Explanation } from '../../../api/explain';
import { withSet } from '../../../query/sets';
import { Button, classes } from '../../../shell/controls';
import { count, percent } from '../../../shell/format';
import { useRovingRows } from '../../../shell/roving';
import { t, tn } from '../../../shell/text';
import { link, navigate, view } from '../../../shell/url';
import type { Run } from '../run';
import { selectedSearch } from './selection';
import { keyName, noteOf, valueName } from './words';
import css from './attributes.module.css';

interface AttributesProps {
  data: Explanation;
  run: Run;
  /** Index of the line whose values are shown. */
  chosen: number;
  onChoose: (line: number) => void;
}

/** The attributes that selected traces have more or less often: shares of both sides, and actions. */
export function Attributes({ data, run, chosen, onChoose }: AttributesProps) {
  const list = useRef<HTMLUListElement>(null);
  useRovingRows(list);
  const { lines, tested, differ } = data.attributes;
  return (
    <section aria-label={t('Attributes')}>
      <div class={css.head}><h2>{t('Attributes')}</h2><span class={css.hint}>{t('on any span')}</span></div>
      {lines.length === 0 && <p class={css.none}>{tested === 0 ? t('No attribute could be compared.') : tn(tested, 'The shares of {n} attribute key are the same on both sides.', 'The shares of {n} attribute keys are the same on both sides.', { n: count(tested) })}</p>}
      {lines.length > 0 && (
        <>
          <div class={css.legend} aria-hidden="true">
            <span>{t('Value')}</span>
            <span class={css.sides}><i class={css.selected} />{t('selected')}<i class={css.rest} />{t('others')}</span>
            <span class={css.last}>{t('share of traces')}</span>
          </div>
          <ul ref={list} class={css.list}>
            {lines.map((line, i) => <Row key={line.filter} line={line} run={run} chosen={i === chosen} onChoose={() => onChoose(i)} />)}
          </ul>
          <p class={css.foot}>{tn(tested - differ, '{n} key without a difference', '{n} keys without a difference', { n: count(tested - differ) })}</p>
        </>
      )}
    </section>
  );
}

function Row({ line, run, chosen, onChoose }: { line: AttributeLine; run: Run; chosen: boolean; onChoose: () => void }) {
  const [key, value] = [keyName(line), valueName(line)];
  const show = selectedSearch(run, view.value, line.filter);
  const text = `${key} = ${value}`;
  return (
    <li class={classes(css.row, chosen && css.chosen)} data-row>
      <div class={css.text}>
        <button type="button" class={css.name} aria-pressed={chosen} title={`${line.field}\n${text}`} onClick={onChoose}><span class={css.key}>{key}</span> = <b>{value}</b></button>
        <span class={css.under}>
          <span class={css.note} title={noteOf(line)}>{noteOf(line)}</span>
          <span class={css.actions}>
            <a href={link({ page: 'explore' }, { q: withSet(run.q, line.filter) })} title={t('Traces with {attribute}', { attribute: text })}>{t('Filter')}</a>
            {line.exclude && <a href={link({ page: 'explore' }, { q: withSet(run.q, line.exclude) })} title={t('Traces with another value of {key}', { key })}>{t('Exclude')}</a>}
            <Button kind="quiet" class={css.action} onClick={() => navigate({ tab: 'groups', by: [line.field] })}>{t('Group by')}</Button>
            <a href={link({ page: 'explore' }, show)} title={t('The selected traces with {attribute}', { attribute: text })}>{tn(line.traces, 'Show {n} trace', 'Show {n} traces', { n: count(line.traces) })}</a>
          </span>
        </span>
      </div>
      <span class={css.bars} aria-hidden="true"><i class={css.selected} style={{ '--w': `${line.selected * 100}%` }} /><i class={css.rest} style={{ '--w': `${line.rest * 100}%` }} /></span>
      <span class={css.shares}><b>{percent(line.selected)}</b> <span class="visually-hidden">{t('of the selected traces, others')}</span> <span>{percent(line.rest)}</span></span>
    </li>
  );
}

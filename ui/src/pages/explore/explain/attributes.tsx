import { useRef, useState } from 'preact/hooks';
import type { AttributeLine, Explanation } from '../../../api/explain';
import { withSet } from '../../../query/sets';
import { Button, classes } from '../../../shell/controls';
import { count, percent } from '../../../shell/format';
import { useRovingRows } from '../../../shell/roving';
import { t, tn } from '../../../shell/text';
import { link, navigate, view } from '../../../shell/url';
import type { Run } from '../run';
import { selectedSearch } from './selection';
import { attributeText, keyName, noteOf, sameOf, valueName } from './words';
import css from './attributes.module.css';

interface AttributesProps {
  data: Explanation;
  run: Run;
  /** Index of the line whose values are shown. */
  chosen: number;
  onChoose: (line: number) => void;
}

/** The attributes that selected traces have more or less often: inputs, then outcomes; shares of both sides, and actions. */
export function Attributes({ data, run, chosen, onChoose }: AttributesProps) {
  const list = useRef<HTMLDivElement>(null);
  useRovingRows(list);
  const { lines, tested, differ } = data.attributes;
  const rows = (kind: AttributeLine['kind']) => lines.map((line, i) => line.kind === kind && (
    <Row key={line.filter} line={line} data={data} run={run} chosen={i === chosen} onChoose={() => onChoose(i)} />
  )).filter(Boolean);
  const [inputs, outcomes] = [rows('input'), rows('outcome')];
  return (
    <section aria-label={t('Attributes')}>
      <div class={css.head}><h2>{t('Inputs')}</h2><span class={css.hint}>{t('what may be the cause: version, flag, host, tenant, request')}</span></div>
      {inputs.length === 0 && <p class={css.none}>{tested === 0 ? t('No attribute could be compared.') : t('No input differs clearly between traces that make the same calls.')}</p>}
      {lines.length > 0 && (
        <div ref={list}>
          <div class={css.legend} aria-hidden="true">
            <span>{t('Value')}</span>
            <span class={css.sides}><i class={css.selected} />{t('selected')}<i class={css.rest} />{t('others')}</span>
            <span class={css.last}>{t('share of traces')}</span>
          </div>
          {inputs.length > 0 && <ul class={css.list} aria-label={t('Inputs')}>{inputs}</ul>}
          {outcomes.length > 0 && <>
            <div class={classes(css.head, css.outcomes)}><h2>{t('Outcomes')}</h2><span class={css.hint}>{t('how the calls ended: status, error, retries')}</span></div>
            <ul class={css.list} aria-label={t('Outcomes')}>{outcomes}</ul>
          </>}
        </div>
      )}
      <p class={css.foot}>{t('Each attribute is compared only among traces with the same root operation that make the same call. Inputs come first; attributes that only identify another operation are not listed.')} {tn(tested - differ, '{n} key does not differ.', '{n} keys do not differ.', { n: count(tested - differ) })}</p>
    </section>
  );
}

function Row({ line, data, run, chosen, onChoose }: { line: AttributeLine; data: Explanation; run: Run; chosen: boolean; onChoose: () => void }) {
  const [key, value] = [keyName(line), valueName(line)];
  const show = selectedSearch(run, view.value, line.filter, data.selected.least);
  const text = attributeText(line);
  const note = noteOf(line);
  const earlier = data.attributes.lines[line.with];
  return (
    <li class={classes(css.row, chosen && css.chosen)} data-row>
      <button type="button" class={css.name} aria-pressed={chosen} title={`${line.field}\n${text}`} onClick={onChoose}><span class={css.key}>{key}</span> = <b>{value}</b></button>
      {note && <span class={css.note}>{note}</span>}
      <Same line={line} />
      {earlier && <span class={css.note}>{t('differs only together with {attribute}', { attribute: attributeText(earlier) })}</span>}
      <span class={css.bars} aria-hidden="true"><i class={css.selected} style={{ '--w': `${line.selected * 100}%` }} /><i class={css.rest} style={{ '--w': `${line.rest * 100}%` }} /></span>
      <span class={css.shares}><b>{percent(line.selected)}</b> <span class="visually-hidden">{t('of the selected traces, others')}</span> <span>{percent(line.rest)}</span></span>
      <span class={css.actions}>
        <a href={link({ page: 'explore' }, { q: withSet(run.q, line.filter) })} title={t('Traces with {attribute}', { attribute: text })}>{t('Filter')}</a>
        {line.exclude && <a href={link({ page: 'explore' }, { q: withSet(run.q, line.exclude) })} title={t('Traces with a different {key}', { key })}>{t('Exclude')}</a>}
        <Button kind="quiet" class={css.action} onClick={() => navigate({ tab: 'groups', by: [line.field] })}>{t('Group by')}</Button>
        <a href={link({ page: 'explore' }, show)} title={t('The selected traces with {attribute}', { attribute: text })}>{tn(line.traces, 'Show {n} trace', 'Show {n} traces', { n: count(line.traces) })}</a>
      </span>
    </li>
  );
}

const maxSame = 3;

/** The attributes that the same traces have, with their values. */
function Same({ line }: { line: AttributeLine }) {
  const [open, setOpen] = useState(false);
  const same = sameOf(line);
  if (same.length === 0) return null;
  const hidden = open ? 0 : same.length - maxSame;
  const shown = hidden > 0 ? same.slice(0, maxSame) : same;
  return (
    <span class={css.note}>
      {t('in the same traces: {attributes}', { attributes: shown.join(', ') })}
      {hidden > 0 && <Button kind="quiet" class={css.action} onClick={() => setOpen(true)}>{t('and {n} more', { n: count(hidden) })}</Button>}
    </span>
  );
}

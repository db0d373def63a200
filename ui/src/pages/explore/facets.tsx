import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Facet, Facets } from '../../api/types';
import { conditionsOf, conditionsOn } from '../../query/edit';
import { canonical, fieldLabel } from '../../query/field';
import { parseQuery } from '../../query/parse';
import { Button, classes, Input } from '../../shell/controls';
import { cutsOf } from '../../shell/cut';
import { count, percent, share } from '../../shell/format';
import { Icon } from '../../shell/icons';
import { Name } from '../../shell/name';
import { useRovingRows } from '../../shell/roving';
import { serviceLabel } from '../../shell/service';
import { AnswerState, Messages, Partial } from '../../shell/states';
import { t, tn } from '../../shell/text';
import { useRequest, type RequestState } from '../../shell/use-request';
import { view } from '../../shell/url';
import { nameIn, orderFacets } from './facet-order';
import { useFacetServices } from './facet-services';
import type { Run } from './run';
import css from './facets.module.css';

/** Number of facets that are open at first, and values shown of each. */
const openFacets = 7;
const shownValues = 5;
const moreValues = 200;

interface FacetListProps {
  answer: RequestState<Facets>;
  run: Run;
  onFilter: (field: string, op: string, value: string) => void;
}

/** The values of fields on all matching spans, one tab stop. The field that tells failed spans from others best is first. */
export default function FacetList({ answer, run, onFilter }: FacetListProps) {
  const [text, setText] = useState('');
  const list = useRef<HTMLDivElement>(null);
  useRovingRows(list);
  const [, drawAgain] = useState({});
  const { data } = answer;
  const named = useMemo(() => namedFields(run.q), [run]);
  const ordered = useMemo(() => (data ? orderFacets(data.facets, data.spans, named, data.spans > 0 && data.errors === data.spans) : []), [data, named]);
  const wanted = text.trim().toLowerCase();
  const shown = wanted ? ordered.filter((f) => String(f.names ?? f.field).toLowerCase().includes(wanted)) : ordered;
  if (!data) return <AnswerState what={t('Facets')} answer={answer} class={css.notice} rows={8} />;
  return (
    <div class={css.list}>
      <div class={css.filter}><Input icon="search" aria-label={t('Find a field')} placeholder={t('Find a field')} value={text} onInput={(e) => setText(e.currentTarget.value)} /></div>
      <AnswerState what={t('Facets')} answer={answer} class={css.note} />
      <div class={css.head}><span>{t('Most useful first')}</span><span>{t('spans')}</span></div>
      {(data.share < 1 || answer.messages.length > 0) && (
        <div class={css.note}>
          {data.share < 1 && <Partial>{t('Counts are estimates from a sample: {share} of the spans were examined.', { share: percent(data.share) })}</Partial>}
          <Messages messages={answer.messages} />
        </div>
      )}
      <div ref={list} role="toolbar" aria-orientation="vertical" aria-label={t('Values of fields')}>
        {shown.map((f, i) => <FacetView key={f.field} facet={f} name={nameIn(named, f)} label={shortLabel(f, ordered)} spans={data.spans} share={data.share} open={wanted !== '' || i < openFacets} run={run} onFilter={onFilter} onRows={() => drawAgain({})} />)}
      </div>
      {shown.length === 0 && <p class={css.none}>{wanted ? t('The matching spans have no field with this name.') : t('No spans match.')}</p>}
      {data.omitted > 0 && <p class={css.none}>{t('{omitted} more fields are not listed. You can still search for them.', { omitted: count(data.omitted) })}</p>}
    </div>
  );
}

/** Fields of the conditions of a search. */
function namedFields(text: string): Set<string> {
  const q = parseQuery(text);
  return new Set(((q && conditionsOf(q)) ?? []).filter((c) => c.name).map((c) => canonical(c.name)));
}

/** Name of a field without its scope, if no other field has this name. */
function shortLabel({ field }: Facet, all: Facet[]): string {
  const label = fieldLabel(field).replace(/^(span|resource)\./, '');
  return all.some((f) => f.field !== field && fieldLabel(f.field).endsWith(`.${label}`)) ? fieldLabel(field) : label;
}

interface FacetViewProps {
  facet: Facet;
  /** Name of the field in conditions. */
  name: string;
  label: string;
  spans: number;
  /** Share of the spans that was examined. */
  share: number;
  open: boolean;
  run: Run;
  onFilter: FacetListProps['onFilter'];
  /** Rows come or go. */
  onRows: () => void;
}

function FacetView({ facet, name, label, spans, share: examined, open: initiallyOpen, run, onFilter, onRows }: FacetViewProps) {
  const [toggled, setToggled] = useState<boolean | null>(null);
  const [all, setAll] = useState(false);
  const open = toggled ?? initiallyOpen;
  const rest = useRequest<Facets>(all && facet.distinct > facet.values.text.length ? 'compare' : null,
    { q: run.q, start: run.start, end: run.end, sel_q: '{ error }', fields: facet.field, values: moreValues }, { maxAge: 60_000 });
  const full = rest.data?.facets[0] ?? facet;
  const part = rest.data?.facets[0] ? rest.data.share : examined;
  const values = useMemo(() => byCount(full, part), [full, part]);
  const cuts = useMemo(() => cutsOf(full.values.text), [full]);
  const services = useFacetServices(facet.field, open, run);
  const shown = all ? values : values.slice(0, shownValues);
  useEffect(onRows, [open, shown.length]);
  return (
    <section class={css.facet} aria-label={label}>
      <h2 data-row>
        <button type="button" class={css.name} aria-expanded={open} title={tn(facet.distinct, '{field}: on {share} of the matching spans, {distinct} value', '{field}: on {share} of the matching spans, {distinct} values', { field: facet.names?.join(', ') ?? facet.field, share: share(facet.spans / Math.max(1, spans)), distinct: count(facet.distinct) })} onClick={() => setToggled(!open)}>
          <Icon name={open ? 'chev' : 'right'} size={12} />
          <span class={css.field}><bdi>{label}</bdi></span>
          <span class={css.distinct}>{tn(facet.distinct, '{n} value', '{n} values', { n: count(facet.distinct) })}</span>
        </button>
      </h2>
      {open && <ul>{shown.map((v) => <ValueRow key={v.text} field={name} value={v} cut={cuts.get(v.text)} service={services.get(v.text)} spans={spans / examined} onFilter={onFilter} />)}</ul>}
      {open && !all && values.length > shownValues && <div data-row><Button kind="quiet" class={css.more} onClick={() => setAll(true)}>{moreText(facet)}</Button></div>}
      {open && all && rest.error && <AnswerState what={t('More values')} answer={rest} />}
      {open && all && full.other > 0 && !rest.loading && <p class={css.none}>{t('{n} spans have other values.', { n: count(full.other / part) })}</p>}
    </section>
  );
}

function moreText(f: Facet): string {
  return tn(f.distinct - shownValues, '{shownValues} more value', '{shownValues} more values', { shownValues: count(f.distinct - shownValues) });
}

interface Value {
  text: string;
  count: number;
  errors: number;
}

/** The values, most frequent first. Counts of a sample become estimates. */
function byCount(f: Facet, examined: number): Value[] {
  return f.values.text.map((text, i) => ({ text, count: Math.round(f.values.count[i] / examined), errors: Math.round(f.values.selected[i] / examined) })).sort((a, b) => b.count - a.count);
}

function ValueRow({ field, value: v, cut, service, spans, onFilter }: { field: string; value: Value; cut?: number; service?: string; spans: number; onFilter: FacetListProps['onFilter'] }) {
  const part = (n: number): string => `${(n / Math.max(1, spans)) * 100}%`;
  const conditions = conditionsOn(view.value.q, field);
  const chosen = conditions.some((c) => c.op === '=' && c.value === v.text);
  const text = (field === 'service' ? serviceLabel(v.text) : v.text) || t('(empty)');
  return (
    <li data-row class={classes(css.value, chosen && css.chosen)}>
      <button type="button" class={css.include} aria-pressed={chosen} title={t('Only {field} = {text}', { field: fieldLabel(field), text })} onClick={() => onFilter(field, '=', v.text)}><Name text={text} cut={cut} title="" /></button>
      {service && <span class={css.of} title={service}>{service}</span>}
      <button type="button" class={css.exclude} aria-label={t('Exclude {field} {text}', { field: fieldLabel(field), text })} title={t('Exclude')} onClick={() => onFilter(field, 'not', v.text)}><Icon name="minus" size={14} /></button>
      <span class={css.count} title={v.errors ? t('{errors} with errors ({count})', { errors: count(v.errors), count: share(v.errors / v.count) }) : t('none with errors')}>{count(v.count)}</span>
      <span class={css.bar} aria-hidden="true">
        <i style={{ width: part(v.count) }} />
        {v.errors > 0 && <b style={{ left: part(v.count - v.errors), width: `max(2px, ${part(v.errors)})` }} />}
      </span>
    </li>
  );
}

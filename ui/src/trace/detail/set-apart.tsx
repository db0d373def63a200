import { useEffect, useState } from 'preact/hooks';
import type { Facets, SpanDetail } from '../../api/types';
import { spansLike, spansOf } from '../../query/edit';
import { capable } from '../../shell/config';
import { count, share } from '../../shell/format';
import { t } from '../../shell/text';
import { useRequest } from '../../shell/use-request';
import type { TraceState } from '../state';
import { apartOf, askedValues, fieldsOf } from './apart';
import { exploreLink } from './attributes';
import css from './detail.module.css';

const day = 86_400_000_000_000n; // ns
/** Milliseconds that a span must be open: who steps through spans asks nothing. */
const patience = 400;

interface Props {
  state: TraceState;
  detail: SpanDetail;
}

/** Attributes of a span that were rare among the calls of its operation in the day before its trace. Nothing where nothing is. */
export function SetApart(props: Props) {
  const [ready, setReady] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setReady(true), patience);
    return () => clearTimeout(timer);
  }, []);
  return ready && props.state.source.kind === 'server' && capable('aggregates') ? <Rare {...props} /> : null;
}

function Rare({ state, detail }: Props) {
  const end = BigInt(state.model.value.begin);
  const fields = fieldsOf(detail).map((f) => f.field).sort();
  const { data } = useRequest<Facets>(fields.length > 0 ? 'facets' : null, { q: spansOf(detail), start: String(end - day), end: String(end - 1n), fields: fields.join(', '), values: askedValues }, { maxAge: 300_000 });
  const found = data ? apartOf(detail, data) : [];
  if (found.length === 0) return null;
  return (
    <section class={css.apart} aria-label={t('Unusual attributes')}>
      <h3 class={css.group}>{t('Unusual attributes')} <span>{t('share of {n} calls in the preceding 24 hours', { n: count(data!.spans) })}</span></h3>
      <ul>
        {found.map((a) => (
          <li key={a.field}>
            <a href={exploreLink(spansLike({ ...detail, status: '' }, [a]), detail)} title={`${a.key} = ${a.value}`}>{a.key} = <b>{a.value || t('(empty)')}</b></a>
            <span>{a.share === 0 ? t('never') : share(a.share)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

import { useMemo } from 'preact/hooks';
import { config } from '../shell/config';
import { Button } from '../shell/controls';
import { ExternalLinks } from '../shell/external-links';
import { Popover } from '../shell/floating';
import { linksFor, subjectOf } from '../shell/link-templates';
import { t } from '../shell/text';
import { useDetail } from './detail/use-detail';
import { spanID } from './model/span';
import type { TraceState } from './state';
import css from './header.module.css';

/** Links from the trace to other systems: with the attributes of its root span, and the times of the whole trace. */
export default function TraceLinks({ state }: { state: TraceState }) {
  const model = state.model.value;
  const { detail } = useDetail(state, spanID(model, 0), model);
  const links = useMemo(() => {
    if (!detail) return [];
    const start = BigInt(model.begin);
    return linksFor(config.value?.links ?? [], 'trace', { ...subjectOf(model.traceID, detail), start, end: start + BigInt(Math.round(model.duration)) });
  }, [detail, model, config.value]);
  if (links.length === 0) return null;
  if (links.length <= 2) return <span class={css.wide}><ExternalLinks links={links} /></span>;
  return (
    <Popover label={t('Links to other systems')} align="end" class={css.links} trigger={(p) => <Button kind="quiet" icon="link" opens {...p}>{t('Links')}</Button>}>
      {() => <ExternalLinks links={links} />}
    </Popover>
  );
}

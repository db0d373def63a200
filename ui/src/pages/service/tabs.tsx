import { useMemo } from 'preact/hooks';
import type { OneService, RoleName, ServiceRole } from '../../api/service';
import type { Facets, Nanos } from '../../api/types';
import { fieldLabel } from '../../query/field';
import { Segmented } from '../../shell/controls';
import { capable } from '../../shell/config';
import { millis } from '../../shell/format';
import { lazy } from '../../shell/lazy';
import { AnswerState, Empty } from '../../shell/states';
import { t } from '../../shell/text';
import { link, navigate, view, visit } from '../../shell/url';
import type { RequestState } from '../../shell/use-request';
import { instancesIn } from './facts';
import { roleQuery } from './queries';
import { used } from './roles';
import css from './service.module.css';

const Errors = lazy(() => import('../explore/errors-tab'));
const Groups = lazy(() => import('../explore/groups/groups'));

/** The tabs that the server can fill, in their order. */
export function offeredTabs(): { id: string; label: string }[] {
  const all = [{ id: 'summary', label: t('Summary') }, { id: 'errors', label: t('Errors') }];
  return capable('aggregates') ? [...all, { id: 'instances', label: t('Instances') }] : all;
}

interface SpansTabProps {
  id: string;
  service: string;
  /** The kind of the spans. */
  role: RoleName;
  start: Nanos;
  end: Nanos;
  /** Values of the attributes that describe the service. */
  facets: RequestState<Facets>;
}

/** A tab after the summary: the failed spans in groups, or the spans by instance. */
export function SpansTab({ id, service, role, start, end, facets }: SpansTabProps) {
  const run = useMemo(() => ({ q: roleQuery(service, role), select: [], start, end, from: millis(start), to: millis(end) }), [service, role, start, end]);
  if (id === 'errors') return <Errors run={run} />;
  if (!facets.data) return <AnswerState what={t('Instances')} answer={facets} class={css.notice} rows={8} />;
  const keys = instancesIn(facets.data).map((f) => f.field);
  const key = keys.find((k) => k === view.value.by[0]) ?? keys[0];
  if (!key) {
    return (
      <div class={css.notice}>
        <Empty title={t('The spans of this service do not say which instance sent them.')}>
          <span>{t('Set one of the resource attributes {list}.', { list: 'service.instance.id, k8s.pod.name, host.name' })}</span>
        </Empty>
      </div>
    );
  }
  const name = (field: string): string => fieldLabel(field).replace(/^resource\./, '');
  const choice = keys.length > 1 && <Segmented label={t('Attribute of instances')} value={key} segments={keys.map((k) => ({ value: k, label: name(k) }))} onChange={(k) => navigate({ by: k === keys[0] ? [] : [k] }, { replace: true })} />;
  return <Groups key={key} run={run} onRun={(text) => visit(link({ page: 'explore' }, { q: text, of: 'spans' }))} fixed={{ keys: [key], choice }} />;
}

const roles: Record<RoleName, { label: () => string; title: () => string }> = {
  requests: { label: () => t('Requests'), title: () => t('Server and consumer spans') },
  calls: { label: () => t('Outgoing calls'), title: () => t('Client and producer spans') },
  internal: { label: () => t('Internal spans'), title: () => t('Spans of kind internal, or without a kind') },
};

/** Chooses the kind of spans, if the service has several. */
export function KindChoice({ data, main, role }: { data: OneService; main: ServiceRole; role: ServiceRole }) {
  const some = data.roles.filter((r) => used(r.total));
  if (some.length < 2) return null;
  return (
    <Segmented
      label={t('Kind of spans')} value={role.role} segments={some.map((r) => ({ value: r.role, label: roles[r.role].label(), title: roles[r.role].title() }))}
      onChange={(kind) => navigate({ kind: kind === main.role ? '' : kind, error: '' }, { replace: true })}
    />
  );
}

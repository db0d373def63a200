import type { Change, Facets, Nanos } from '../../api/types';
import { count, millis, time } from '../../shell/format';
import { zone } from '../../shell/preferences';
import { Text, TextN, t } from '../../shell/text';
import { link } from '../../shell/url';
import { useRequest, type RequestState } from '../../shell/use-request';
import { spansOf } from './queries';
import css from './service.module.css';

/** Attributes of instances: the first one that a service has counts. */
const instanceFields = ['resource.service.instance.id', 'resource.k8s.pod.name', 'resource.host.name'];
const fields = ['resource.service.version', 'resource.telemetry.sdk.language', ...instanceFields];

/** The values of the attributes that describe a service. */
export function useFacets(service: string, start: Nanos, end: Nanos): RequestState<Facets> {
  return useRequest<Facets>('facets', { q: spansOf(service), start, end, fields: fields.join(', '), values: 3 }, { maxAge: 60_000 });
}

/** The attributes of instances that spans have, the most precise one first. */
export function instancesIn(data: Facets | undefined): Facets['facets'] {
  return instanceFields.flatMap((name) => data?.facets.filter((f) => f.field === name && f.spans > 0) ?? []);
}

/** Version, instances and language of a service, from the attributes of its spans. */
export function Facts({ service, data, end, version }: { service: string; data: Facets | undefined; end: Nanos; version: Change | undefined }) {
  const facet = (name: string) => data?.facets.find((f) => f.field === name && f.spans > 0);
  const versions = facet(fields[0])?.values.text ?? [];
  const instance = instancesIn(data)[0];
  const instances = instance?.distinct ?? 0;
  const groups = (field: string): string => link({ page: 'explore' }, { q: spansOf(service), tab: 'groups', by: [field], of: 'spans' });
  const language = facet(fields[1])?.values.text ?? [];
  const at = version ? time(millis(version.at), zone.value, millis(end), 0) : '';
  return (
    <>
      {versions.length === 1 && <span><Text of="version {version}" version={<b>{versions[0]}</b>} />{version && <span class={css.since}>{' '}{t('since {time}', { time: at })}</span>}</span>}
      {/* The newest one may have been rolled back. */}
      {versions.length > 1 && <a href={groups(fields[0])} title={t('Requests, errors and durations of each version')}>{t('versions {list}', { list: versions.join(', ') })}{version && <span class={css.since}>{t(' ({version} first seen {time})', { version: version.to, time: at })}</span>}</a>}
      {instances > 0 && <a href={link({ page: 'service', name: service }, { tab: 'instances' })} title={t('Requests, errors and durations of each instance')}><TextN count={instances} one="{n} instance" other="{n} instances" n={<b>{count(instances)}</b>} /></a>}
      {language.length > 0 && <span>{language.join(', ')}</span>}
    </>
  );
}

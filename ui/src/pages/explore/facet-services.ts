import { useMemo } from 'preact/hooks';
import type { Groups } from '../../api/groups';
import { canonical } from '../../query/field';
import { serviceLabel } from '../../shell/service';
import { useRequest } from '../../shell/use-request';
import type { Run } from './run';

/** Fields whose values mean little without their service. */
const qualified = new Set(['name', 'resource.service.version']);

/** Groups that are read. Values of others have no service beside them. */
const most = 200;

/** For the fields that need it: the service of a value that only one service has, if there are several. */
export function useFacetServices(field: string, open: boolean, run: Run): ReadonlyMap<string, string> {
  const wanted = open && qualified.has(canonical(field));
  const { data } = useRequest<Groups>(wanted ? 'groups' : null, { q: run.q, start: run.start, end: run.end, of: 'spans', by: ['service', field], limit: most }, { maxAge: 60_000 });
  return useMemo(() => (data && wanted ? servicesOf(data) : new Map<string, string>()), [data, wanted]);
}

/** The services of values that only one service has. Nothing is known if not all groups were read. */
export function servicesOf({ groups, distinct, other }: Pick<Groups, 'groups' | 'distinct' | 'other'>): Map<string, string> {
  const services = new Map<string, string | null>();
  if (distinct > groups.count.length || other > 0) return new Map();
  const [ofService, ofField] = groups.values;
  if (new Set(ofService).size < 2) return new Map(); // it says nothing
  for (const [i, value] of ofField.entries()) if (value !== null) services.set(value, services.has(value) ? null : ofService[i]);
  return new Map([...services].filter((e): e is [string, string] => e[1] !== null).map(([value, service]) => [value, serviceLabel(service)]));
}

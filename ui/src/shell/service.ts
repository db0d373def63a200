import { t } from './text';

/** Name of a service for display: what spans without one are stored under is not a service. */
export function serviceLabel(name: string): string {
  return name === 'empty-service-name' || name === 'missing-service-name' ? t('(no service name)') : name;
}

import { t } from './text';

/** Number of colour steps for services, `--svc-1` to `--svc-12`. */
const steps = 12;

/** Name of a service for display: what spans without one are stored under is not a service. */
export function serviceLabel(name: string): string {
  return name === 'empty-service-name' || name === 'missing-service-name' ? t('(no service name)') : name;
}

/** CSS colour of a service, by a hash (folded FNV-1a) of its name. Services can share a colour: always show the name, too. */
export function serviceColor(name: string): string {
  let h = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) {
    h ^= name.charCodeAt(i);
    h = Math.imul(h, 0x01000193);
  }
  h ^= h >>> 15; // the low bits alone differ little between short names
  return `var(--svc-${((h >>> 0) % steps) + 1})`;
}

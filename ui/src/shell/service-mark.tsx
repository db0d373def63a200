import { serviceLabel } from './service';
import { serviceColor, serviceSteps } from './service-color';
import { computed } from '@preact/signals';
import { classes } from './controls';
import { cutsOf } from './cut';
import { Name } from './name';
import { t } from './text';
import css from './service-mark.module.css';

/** Where the names of services are cut that do not fit. */
const cuts = computed(() => cutsOf(serviceSteps.value.keys()));

/** The color mark of a service, for rows where the name stands elsewhere: a square, or a hollow diamond if the service is inferred from its callers. */
export function ServiceSwatch({ name, inferred }: { name: string; inferred?: boolean }) {
  return <span aria-hidden="true" class={classes(css.swatch, inferred && css.inferred)} style={{ '--c': serviceColor(name) }} />;
}

/** A service: its mark and its name. */
export function ServiceMark({ name, inferred, strong }: { name: string; inferred?: boolean; strong?: boolean }) {
  return (
    <span class={classes(css.service, strong && css.strong)} title={inferred ? t('{name}, inferred from its callers', { name }) : name}>
      <ServiceSwatch name={name} inferred={inferred} />
      <Name text={serviceLabel(name)} cut={cuts.value.get(name)} title="" />
    </span>
  );
}

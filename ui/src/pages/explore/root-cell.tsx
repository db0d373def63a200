import type { ComponentChildren } from 'preact';
import { Badge } from '../../shell/controls';
import { count } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { ServiceSwatch } from '../../shell/service-mark';
import { t } from '../../shell/text';
import css from './trace-table.module.css';

interface RootCellProps {
  /** Service of the root, "" if the root is missing. */
  service: string;
  href: string;
  title: string;
  /** Operation and service, or why they are missing. */
  children: ComponentChildren;
  errors: number;
  orphans: number;
  /** Says how many parents are missing. */
  incomplete: string;
}

/** The root of a listed trace, its spans with errors, and its missing parents. */
export function RootCell({ service, href, title, children, errors, orphans, incomplete }: RootCellProps) {
  return (
    <span class={css.rootCell}>
      {service && <ServiceSwatch name={service} />}
      <a class={css.link} href={href} tabIndex={-1} title={title}>{children}</a>
      {errors > 0 && <Badge kind="error" title={t('{errors} spans with errors', { errors: count(errors) })}><Mark kind="error" size={11} label={t('errors:')} />{count(errors)}</Badge>}
      {orphans > 0 && <Badge title={incomplete}><Mark kind="partial" size={11} label={t('incomplete, missing parents:')} />{count(orphans)}</Badge>}
    </span>
  );
}

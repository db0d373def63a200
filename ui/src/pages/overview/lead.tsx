import type { Incidents } from '../../api/incidents';
import type { Usual } from '../../api/types';
import { IncidentCards } from '../../incidents/card';
import type { TimeText } from '../../incidents/words';
import { classes } from '../../shell/controls';
import { minutes } from '../../shell/format';
import { Icon, Mark } from '../../shell/icons';
import { serviceLabel } from '../../shell/service';
import { t, tn } from '../../shell/text';
import { link } from '../../shell/url';
import { spansOf } from '../service/queries';
import type { ServiceHealth } from './health';
import type { Sentence } from './sentence';
import css from './overview.module.css';

/** Query for the requests that the sentence about a service is of. */
export function queryOf(s: ServiceHealth): string {
  return spansOf(s.name, s.state !== 'silent' && s.series.incident?.kind === 'errors' ? 'error' : '');
}

/** What the page compares with, and how much of it there is. */
export function usualText(usual: Usual): string {
  return t('Compared with the 24 hours before the end of this time range, without incidents ({quiet} of data).', { quiet: minutes(usual.quiet) });
}

const maxDetails = 4;

interface LeadProps {
  sentence: Sentence;
  services: number;
  usual: Usual | null;
  /** There are no requests, at least not any more. */
  quiet: boolean;
  /** Until they are known, there is a line for each service. */
  incidents: Incidents | undefined;
  /** Incidents are being read: their place is kept. */
  expecting: boolean;
  at: TimeText;
  to: string;
}

/** The sentence of the page, a card for each incident, and a line for each other service that is not as usual. */
export function Lead({ sentence, services, usual, quiet, incidents, expecting, at, to }: LeadProps) {
  const calm = sentence.details.length === 0;
  const shown = new Set(incidents?.incidents.flatMap((i) => [i.source.name, ...i.reached.map((s) => s.name)]));
  return (
    <div class={classes(css.lead, expecting && css.expecting)}>
      <h1>{calm && !quiet && usual && <span class={css.calm}><Mark kind="ok" size={16} label="" /></span>}{sentence.text}</h1>
      {incidents && <IncidentCards incidents={incidents} at={at} to={to} />}
      {sentence.details.filter((d) => !shown.has(d.service.name)).slice(0, maxDetails).map(({ service, text }) => (
        <p key={service.name} class={css.detail}>
          <Mark kind={service.state === 'failing' ? 'error' : 'warn'} size={13} label="" />
          <span>
            <a class={service.state === 'failing' ? css.failing : css.slow} href={link({ page: 'explore' }, { q: queryOf(service) })}>{serviceLabel(service.name)}</a>{' '}{text}
          </span>
        </p>
      ))}
      {calm && !quiet && (
        <p class={css.detail}>
          {usual
            ? <span>{tn(services, 'Errors and durations of all requests are as usual.', 'Errors and durations of all services are as usual.')}{' '}{usualText(usual)}</span>
            : <><Icon name="clock" size={14} /><span>{t('There is not enough earlier data to compare with.')}</span></>}
        </p>
      )}
      {!calm && usual && !expecting && <p class={css.detail}><span>{usualText(usual)}</span></p>}
    </div>
  );
}

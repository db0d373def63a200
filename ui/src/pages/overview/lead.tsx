import type { Usual } from '../../api/types';
import { minutes } from '../../shell/format';
import { Icon, Mark } from '../../shell/icons';
import { t, tn } from '../../shell/text';
import { link } from '../../shell/url';
import type { ServiceHealth } from './health';
import type { Sentence } from './sentence';
import css from './overview.module.css';

/** Query for the requests of a service, or only for the failed ones. */
export function serviceQuery(name: string, more = ''): string {
  return `{ service = ${JSON.stringify(name)}${more && ` && ${more}`} }`;
}

/** Query for the requests that the sentence about a service is of. */
export function queryOf(s: ServiceHealth): string {
  return serviceQuery(s.name, s.state !== 'silent' && s.series.incident?.kind === 'errors' ? 'error' : '');
}

/** What is usual, and how much is known of it. */
export function usualText(usual: Usual): string {
  return t('Usual is the quiet time of the day before: {quiet}.', { quiet: minutes(usual.quiet) });
}

/** The sentence of the page, and one line for each of the worst services. `quiet`: there are no requests, at least not any more. */
export function Lead({ sentence, services, usual, quiet }: { sentence: Sentence; services: ServiceHealth[]; usual: Usual | null; quiet: boolean }) {
  const calm = sentence.details.length === 0;
  return (
    <div class={css.lead}>
      <h1 class={css.sentence}>{calm && !quiet && usual && <span class={css.calm}><Mark kind="ok" size={16} label="" /></span>}{sentence.text}</h1>
      {sentence.details.map(({ service, text }) => (
        <p key={service.name} class={css.detail}>
          <Mark kind={service.state === 'failing' ? 'error' : 'warn'} size={13} label="" />
          <span>
            <a class={service.state === 'failing' ? css.failing : css.slow} href={link({ page: 'explore' }, { q: queryOf(service) })}>{service.name}</a>{' '}{text}
          </span>
        </p>
      ))}
      {calm && !quiet && (
        <p class={css.detail}>
          {usual
            ? <span>{tn(services.length, 'Errors and durations of all requests are as usual.', 'Errors and durations of all services are as usual.')}{' '}{usualText(usual)}</span>
            : <><Icon name="clock" size={14} /><span>{t('There is not enough earlier data to compare with.')}</span></>}
        </p>
      )}
      {!calm && usual && <p class={css.detail}><span>{usualText(usual)}</span></p>}
    </div>
  );
}

import { Highlight } from '../../query/highlight';
import { t } from '../../shell/text';
import css from './examples.module.css';

const examples: [string, string][] = [
  ['{ service = "checkout" && duration > 1s }', t('slow spans of a service')],
  ['{ error && http.response.status_code >= 500 }', t('failed requests')],
  ['{ root && trace.duration > 2s }', t('roots of slow traces')],
  ['{ name =~ "(?i).*cart.*" || exists(user.id) }', t('a regular expression, an attribute that exists')],
  ['{ service = "web" } >> { db.system = "redis" }', t('calls of Redis below a service')],
];

/** Searches that show the language, beside an error in the search. */
export default function Examples({ onRun }: { onRun: (text: string) => void }) {
  return (
    <section class={css.examples} aria-label={t('Examples of searches')}>
      <h2 class={css.title}>{t('Examples')}</h2>
      <ul>
        {examples.map(([text, what]) => (
          <li key={text} class={css.example}>
            <button type="button" class={css.query} onClick={() => onRun(text)}><Highlight text={text} /></button>
            <span class={css.what}>{what}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

import { config } from './config';
import { isMac, keyGroups, keyName, type KeyBinding } from './keys';
import { t, Text } from './text';
import css from './help.module.css';

/** All keys of the page and of the shell, what the jump box accepts, a link to the documentation, and the version. */
export function Help() {
  const groups = [...keyGroups.value].reverse().filter((g) => g.bindings.length > 0);
  return (
    <div class={css.body}>
      {groups.map((g) => (
        <section key={g.name}>
          <h3 class={css.group}>{g.name}</h3>
          <dl class={css.keys}>{g.bindings.map((b) => <Binding key={b.label} binding={b} />)}</dl>
        </section>
      ))}
      <section>
        <h3 class={css.group}>{t('What “Jump to” accepts')}</h3>
        <p class={css.text}><Text of="A trace ID in hex of any length, a {traceparent}, {code} or {uber} header, a link to a trace from Jaeger, Zipkin or Grafana, a service, a page, or a query in braces." traceparent={<code>traceparent</code>} code={<code>b3</code>} uber={<code>uber-trace-id</code>} /></p>
      </section>
      <p class={css.text}><a href="docs/" target="_blank" rel="noopener">{t('Documentation')}</a></p>
      {config.value && <p class={css.version}>{t('Version {gitCommit}', { gitCommit: config.value.version.gitVersion || config.value.version.gitCommit || t('unknown') })}</p>}
    </div>
  );
}

function Binding({ binding }: { binding: KeyBinding }) {
  return (
    <>
      <dt>{binding.keys.map((k, i) => <span key={k}>{i > 0 && ' ' + t('or') + ' '}<kbd>{keyName(k, isMac)}</kbd></span>)}</dt>
      <dd>{binding.label}</dd>
    </>
  );
}

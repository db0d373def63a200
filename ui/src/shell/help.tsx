import { config } from './config';
import { Dialog } from './dialog';
import { isMac, keyGroups, keyName, type KeyBinding } from './keys';
import css from './help.module.css';

/** All keys of the page and of the shell, what the jump box accepts, and the version. */
export function Help({ onClose }: { onClose: () => void }) {
  const groups = [...keyGroups.value].reverse().filter((g) => g.bindings.length > 0);
  return (
    <Dialog title="Keys" onClose={onClose} class={css.help}>
      <div class={css.body}>
        {groups.map((g) => (
          <section key={g.name}>
            <h3 class={css.group}>{g.name}</h3>
            <dl class={css.keys}>{g.bindings.map((b) => <Binding key={b.label} binding={b} />)}</dl>
          </section>
        ))}
        <section>
          <h3 class={css.group}>What the jump box accepts</h3>
          <p class={css.text}>
            A trace ID in hex of any length, a <code>traceparent</code>, <code>b3</code> or <code>uber-trace-id</code> header,
            a link to a trace from Jaeger, Zipkin or Grafana, a service, a page, or a query in braces.
          </p>
        </section>
        {config.value && <p class={css.version}>Version {config.value.version.gitVersion || config.value.version.gitCommit || 'unknown'}</p>}
      </div>
    </Dialog>
  );
}

function Binding({ binding }: { binding: KeyBinding }) {
  return (
    <>
      <dt>{binding.keys.map((k, i) => <span key={k}>{i > 0 && ' or '}<kbd>{keyName(k, isMac)}</kbd></span>)}</dt>
      <dd>{binding.label}</dd>
    </>
  );
}

import { Icon } from '../../shell/icons';
import { recentTraces } from '../../shell/recent';
import { link, view } from '../../shell/url';
import { Frame } from './frame';
import css from './later.module.css';

/** `/trace/a...b`: links to the two traces. */
export default function ComparePage() {
  const { route } = view.value;
  if (route.page !== 'compare') return null;
  return (
    <Frame title="Compare" sentence="Two traces" note="Comparing traces side by side comes in a later version. Until then, open each of them.">
      <ul class={css.list}>
        {[route.a, route.b].filter(Boolean).map((id, i) => (
          <li key={i} class={css.item}>
            <a class={css.main} href={link({ page: 'trace', id })}><Icon name="right" />{i === 0 ? 'A' : 'B'}: {recentTraces.value.find((t) => t.id === id)?.name ?? 'trace'} <code>{id}</code></a>
          </li>
        ))}
      </ul>
    </Frame>
  );
}

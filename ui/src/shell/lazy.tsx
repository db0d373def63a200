import type { FunctionComponent } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { Button } from './controls';
import { Mark } from './icons';
import { t } from './text';
import css from './states.module.css';

/** A component that is loaded when it is first shown, or before, with `preload`. */
export type LazyComponent<P = {}> = FunctionComponent<P> & { preload: () => void };

/** Component that is loaded when it is first shown. While it loads, nothing is shown; if loading fails, a message. */
export function lazy<P extends object = {}>(load: () => Promise<{ default: FunctionComponent<P> }>): LazyComponent<P> {
  let Loaded: FunctionComponent<P> | undefined;
  let loading: Promise<void> | undefined;
  const start = (): Promise<void> => {
    loading ??= load().then((m) => { Loaded = m.default; });
    loading.catch(() => { loading = undefined; }); // the next use tries again
    return loading;
  };
  function Lazy(props: P) {
    const [, refresh] = useState(0);
    const [failed, setFailed] = useState(false);
    useLayoutEffect(() => {
      if (!Loaded) start().then(() => refresh((n) => n + 1), () => setFailed(true));
    }, []);
    if (failed) return <div class={css.page}><div role="alert" class={css.failure}><Mark kind="error" label="" /><span>{t('This part of the page cannot be loaded. The server does not respond, or was updated.')}</span><Button kind="quiet" onClick={() => location.reload()}>{t('Reload')}</Button></div></div>;
    return Loaded ? <Loaded {...props} /> : null;
  }
  return Object.assign(Lazy, { preload: () => void start() });
}

import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';

/** Component that is loaded when it is first shown. While it loads, nothing is shown; if loading fails, a message. */
export function lazy(load: () => Promise<{ default: ComponentType }>): ComponentType {
  let Loaded: ComponentType | undefined;
  return function Lazy() {
    const [, refresh] = useState(0);
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      if (Loaded) return;
      load().then((m) => {
        Loaded = m.default;
        refresh((n) => n + 1);
      }, () => setFailed(true));
    }, []);
    if (failed) return <p role="alert">This part of the page cannot be loaded. Reload the page.</p>;
    return Loaded ? <Loaded /> : null;
  };
}

import { useEffect, useState } from 'preact/hooks';
import { theme } from '../shell/preferences';

/** Computed colors of tokens, for drawing on a canvas. `names` are without `--`. */
export function colorsOf(names: string[], at: Element): Map<string, string> {
  const probe = document.createElement('span');
  at.append(probe);
  const style = getComputedStyle(probe);
  const colors = new Map<string, string>();
  for (const name of names) {
    probe.style.color = `var(--${name})`;
    colors.set(name, style.color);
  }
  probe.remove();
  return colors;
}

const query = '(prefers-color-scheme: dark)';

/** The state of the theme, which changes when canvases must be drawn again. */
export function useThemeVersion(): string {
  const [dark, setDark] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const changed = (): void => setDark(media.matches);
    media.addEventListener('change', changed);
    return () => media.removeEventListener('change', changed);
  }, []);
  return `${theme.value}-${dark ? 'dark' : 'light'}`;
}

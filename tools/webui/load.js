// What the page itself loads is known, too.
const known = new Map([...document.querySelectorAll('link')].map((link) => [link.href, 0]));

/** Waits for a part of the UI and its style sheets, and begins to load the other modules that it needs. */
export function load(part, files) {
  return Promise.all([part, ...files.split(' ').map(add)]).then(([module]) => module);
}

function add(file) {
  const { href } = new URL(file, import.meta.url);
  if (known.has(href)) return known.get(href);
  const isStyle = file.endsWith('.css');
  const link = document.createElement('link');
  link.rel = isStyle ? 'stylesheet' : 'modulepreload';
  link.crossOrigin = '';
  link.href = href;
  const loading = isStyle && new Promise((resolve, reject) => {
    link.onload = resolve;
    link.onerror = () => {
      known.delete(href); // the next use tries again
      link.remove();
      reject(new Error('cannot load ' + href));
    };
  });
  known.set(href, loading);
  document.head.append(link);
  return loading;
}

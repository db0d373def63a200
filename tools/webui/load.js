// What the page itself loads is known, too. Scripts run after its style sheets were loaded or have
// failed: the failed ones are loaded again.
const known = new Map([...document.querySelectorAll('link')]
  .filter((link) => link.rel !== 'stylesheet' || hasRules(link.sheet)).map((link) => [link.href, 0]));

/** Whether a style sheet was loaded. A failed one is null, is empty or cannot be read. */
function hasRules(sheet) {
  try {
    return sheet.cssRules.length > 0;
  } catch {
    return false;
  }
}

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

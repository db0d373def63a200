const styles = new Map();

/** Waits for a part of the UI and its style sheets, and begins to load the other modules that it needs. */
export function load(part, files) {
  return Promise.all([part, ...files.split(' ').map(add)]).then(([module]) => module);
}

function add(file) {
  if (styles.has(file)) return styles.get(file);
  const isStyle = file.endsWith('.css');
  const link = document.createElement('link');
  link.rel = isStyle ? 'stylesheet' : 'modulepreload';
  link.crossOrigin = '';
  link.href = new URL(file, import.meta.url);
  const loading = isStyle && new Promise((resolve, reject) => {
    link.onload = resolve;
    link.onerror = () => {
      styles.delete(file); // the next use tries again
      link.remove();
      reject(new Error('cannot load ' + link.href));
    };
  });
  styles.set(file, loading);
  document.head.append(link);
  return loading;
}

// Theme and search of the documentation. Loaded before the page is drawn, so that the theme does not change on the screen.
'use strict';

(() => {
  const themeKey = 'tracing.theme'; // the choice in the web UI, which has the same origin
  const themes = ['system', 'light', 'dark'];

  function storedTheme() {
    try {
      const theme = localStorage.getItem(themeKey);
      return themes.includes(theme) ? theme : 'system';
    } catch {
      return 'system';
    }
  }

  function applyTheme(theme) {
    if (theme === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }

  function showThemeButton() {
    const button = document.getElementById('theme');
    let theme = storedTheme();
    const label = () => { button.textContent = `Theme: ${theme}`; };
    label();
    button.hidden = false;
    button.addEventListener('click', () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      applyTheme(theme);
      label();
      try {
        if (theme === 'system') localStorage.removeItem(themeKey);
        else localStorage.setItem(themeKey, theme);
      } catch {
        // Without storage, the choice lasts as long as the page.
      }
    });
  }

  let index = null; // pages, sections, and for each word the numbers of its sections
  let vocabulary = [];
  let onIndex = () => {};

  // The index is a script that calls this function, because pages opened as files cannot fetch.
  window.searchIndexLoaded = (loaded) => {
    for (const numbers of Object.values(loaded.words)) {
      for (let i = 1; i < numbers.length; i++) numbers[i] += numbers[i - 1];
    }
    vocabulary = Object.keys(loaded.words);
    index = loaded;
    onIndex();
  };

  let requested = false;
  function loadIndex() {
    if (requested) return;
    requested = true;
    const script = document.createElement('script');
    script.src = document.body.dataset.root + 'search-index.js';
    script.onerror = () => { requested = false; };
    document.head.append(script);
  }

  const split = (text) => text.toLowerCase().match(/[\p{L}\p{Nd}_]{2,}/gu) || [];

  /** Words of questions that say nothing about their subject. */
  const fillers = new Set(['an', 'are', 'can', 'do', 'does', 'for', 'how', 'in', 'is', 'many', 'much', 'my', 'of', 'on', 'the', 'to', 'what', 'which', 'why', 'with']);

  /** The words of a search, without fillers unless there is nothing else. */
  function terms(text) {
    const words = split(text), subjects = words.filter((w) => !fillers.has(w));
    return subjects.length > 0 ? subjects : words;
  }

  /** The beginning that forms of a word share: `upgrad` of upgrade, upgrades and upgrading. */
  const stem = (word) => (word.length > 5 ? word.replace(/(ing|es|ed|e|s)$/, '') : word);

  /** Points of each section with a form of the word, or one that begins with it; whole words count more. */
  function matches(word) {
    const points = new Map(), beginning = stem(word);
    for (const known of vocabulary) {
      if (!known.startsWith(beginning)) continue;
      const value = known === word ? 3 : 1;
      for (const n of index.words[known]) points.set(n, Math.max(value, points.get(n) || 0));
    }
    return points;
  }

  /** The best sections that have all words of a text. Words in headings and titles count most. */
  function find(text) {
    const words = terms(text);
    if (words.length === 0) return [];
    const found = words.map(matches);
    const results = [];
    for (const n of found[0].keys()) {
      if (!found.every((points) => points.has(n))) continue;
      const section = index.sections[n];
      const heading = split(section.h), title = split(index.pages[section.p][1]);
      let score = section.i === '' ? 2 : 0;
      if (index.pages[section.p][0].endsWith('.yaml.html')) score -= 10; // examples come after pages about them
      words.forEach((word, i) => {
        score += found[i].get(n);
        if (heading.includes(word)) score += 12;
        else if (heading.some((w) => w.startsWith(stem(word)))) score += 6;
        if (title.some((w) => w.startsWith(stem(word)))) score += 4;
      });
      results.push({ section, score });
    }
    return results.sort((a, b) => b.score - a.score).slice(0, 20).map((r) => r.section);
  }

  function startSearch() {
    const input = document.getElementById('search');
    const list = document.getElementById('results');
    const count = document.getElementById('count');
    let selected = -1;

    function close() {
      list.hidden = true;
      input.setAttribute('aria-expanded', 'false');
      input.removeAttribute('aria-activedescendant');
    }

    function select(n) {
      const items = list.children;
      if (items.length === 0 || list.hidden) return;
      selected = (n + items.length) % items.length;
      for (let i = 0; i < items.length; i++) items[i].setAttribute('aria-selected', String(i === selected));
      items[selected].scrollIntoView({ block: 'nearest' });
      input.setAttribute('aria-activedescendant', items[selected].id);
    }

    function open(li) {
      close();
      input.blur();
      location.assign(li.dataset.url);
    }

    function item(section, n) {
      const [page, title] = index.pages[section.p];
      const li = document.createElement('li');
      li.id = `result-${n}`;
      li.setAttribute('role', 'option');
      li.dataset.url = document.body.dataset.root + page + (section.i ? '#' + section.i : '');
      const name = document.createElement('b');
      name.textContent = section.i ? `${title}: ${section.h}` : title;
      const excerpt = document.createElement('small');
      excerpt.textContent = section.e;
      li.append(name, excerpt);
      li.addEventListener('click', () => open(li));
      return li;
    }

    function show() {
      if (!index) return;
      const results = find(input.value);
      list.replaceChildren(...results.map(item));
      list.hidden = results.length === 0;
      input.setAttribute('aria-expanded', String(!list.hidden));
      count.textContent = input.value ? `${results.length} results` : '';
      selected = -1;
      if (results.length > 0) select(0);
    }

    onIndex = show;
    input.addEventListener('focus', () => { loadIndex(); show(); });
    input.addEventListener('input', () => { loadIndex(); show(); });
    input.addEventListener('blur', () => setTimeout(() => { if (document.activeElement !== input) close(); }, 200));
    input.addEventListener('keydown', (e) => {
      if (e.key === 'ArrowDown') select(selected + 1);
      else if (e.key === 'ArrowUp') select(selected - 1);
      else if (e.key === 'Enter' && !list.hidden) open(list.children[selected]);
      else if (e.key === 'Escape') { input.value = ''; show(); close(); input.blur(); } else return;
      e.preventDefault();
    });
    document.addEventListener('keydown', (e) => {
      if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || e.target === input) return;
      e.preventDefault();
      input.focus();
    });
  }

  applyTheme(storedTheme());
  document.addEventListener('DOMContentLoaded', () => {
    showThemeButton();
    startSearch();
  });
})();

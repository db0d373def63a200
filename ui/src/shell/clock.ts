import { computed, signal } from '@preact/signals';

let timer = 0;

/** The time in milliseconds since the epoch, every second while something shows it. */
export const now = signal(Date.now(), {
  watched() {
    this.value = Date.now();
    timer = window.setInterval(() => { if (!document.hidden) this.value = Date.now(); }, 1000);
  },
  unwatched() {
    clearInterval(timer);
  },
});

/** The time, every ten seconds: for ages. */
export const slowNow = computed(() => Math.floor(now.value / 10_000) * 10_000);

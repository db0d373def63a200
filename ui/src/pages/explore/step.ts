const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400];
const columns = 120;

/** Width of the columns of a heatmap of traces, as a parameter. Counts of spans exist by the minute, those of traces do not, so that narrower columns cost nothing. */
export function stepOf(milliseconds: number): string {
  return secondsOf(milliseconds) + 's';
}

/** The same in seconds. */
export function secondsOf(milliseconds: number): number {
  const least = milliseconds / 1000 / columns;
  return steps.find((s) => s >= least) ?? Math.ceil(least / 86_400) * 86_400;
}

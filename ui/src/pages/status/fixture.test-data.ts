import type { Details, ProcessAnswer, Processes } from '../../api/deployment';

/** A process for tests: `change` sets members of its details. */
export function processWith(change: Partial<Details> = {}, address = ''): ProcessAnswer<Details> {
  return {
    address,
    data: {
      process: 'host', build: { version: '1.2', commit: '', date: '' }, now: '2026-03-04T12:00:10Z', since: '2026-03-04T12:00:00Z',
      report: { status: 'ok', pipelines: [], beside: [], configuration: { since: '2026-03-04T12:00:00Z', reloads: 0 } },
      intake: { since: '2026-03-04T12:00:00Z', dropped: 0, receivers: [] }, accounts: [], balances: [], queues: [], stores: [], limits: [], ...change,
    },
  };
}

/** An answer with processes. */
export function answerOf(...processes: ProcessAnswer<Details>[]): Processes<Details> {
  return { peers: processes.length - 1, hidden: false, processes };
}

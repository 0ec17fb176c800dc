import type { BatchProgress, BatchView, BatchItemResult } from '../../entries/client';
import { batchRows } from '../../batch/progress';
import { EXIT_CODE } from '../command-outcome';
import type { Session } from '../session';
import { columns } from './text';

/** Returns one line for an item. The link or the message is last, because it may be long. */
export function itemLine(result: BatchItemResult): string {
  const { endedAt, outcome, delivery, projectId, jobId, message, prLink } = result;
  const parts = [
    endedAt.slice(0, 19) + 'Z',
    outcome.padEnd('FollowUpRejected'.length),
    (delivery ?? '-').padEnd('accepted'.length),
    `${projectId}/${jobId}`,
    message ?? prLink ?? '',
  ];
  return parts.join('  ').trimEnd();
}

export function batchLine(progress: BatchProgress): string {
  const { state, items, ended, open, byStatus, byFailure, unknownDeliveries, message } = progress;
  const parts = [
    state !== 'running' && (state === 'paused' ? 'paused ("batch resume" resumes it)' : state),
    // The percentage is rounded down, so that only a batch that has ended shows 100 %.
    `${ended} of ${items} · ${Math.floor((100 * ended) / items)} %`,
    `running ${open}`,
    ...Object.entries({ ...byStatus, ...byFailure }).map(([name, count]) => `${name} ${count}`),
    unknownDeliveries > 0 && `unknown deliveries ${unknownDeliveries}`,
    (state === 'running' || state === 'paused') && message,
  ];
  return parts.filter(Boolean).join(' · ');
}

/** Prints the status or the result of a batch to stdout, even if the batch has failed. */
export function printBatch(session: Session, batchId: string, view: BatchView): void {
  const failures = (view.summary?.firstFailures ?? []).map(({ workflowId, outcome, message }) =>
    ['', workflowId, message === null ? outcome : `${outcome}: ${message}`].join('  '),
  );
  const rows = columns([['batch', batchId], ...batchRows(view)]);
  session.print(
    { batchId, ...view },
    [rows, ...(failures.length > 0 ? ['first failures', ...failures] : [])].join('\n'),
  );
}

const EXIT_CODE_BY_STATE: Partial<Record<BatchView['state'], number>> = {
  'max-failures-exceeded': EXIT_CODE.maxFailuresExceeded,
  cancelled: EXIT_CODE.cancelled,
  incomplete: EXIT_CODE.other,
  terminated: EXIT_CODE.other,
};

export function printBatchOutcome(session: Session, batchId: string, view: BatchView): void {
  session.exitCode = EXIT_CODE_BY_STATE[view.state] ?? EXIT_CODE.success;
  printBatch(session, batchId, view);
  if (!session.isJson) session.printStatus(`results     ${session.command('batch', 'results', batchId)}`);
}

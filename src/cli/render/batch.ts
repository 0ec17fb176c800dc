import type { BatchProgress, BatchView, BatchItemResult } from '../../entries/client';
import { batchRows } from '../../batch/progress';
import { EXIT_CODE } from '../command-outcome';
import type { Session } from '../session';
import { columns } from './text';

/** The link or the message comes last, because it may be long. */
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
    state !== 'running' && (state === 'paused' ? 'paused; "batch resume" continues it' : state),
    // Rounded down: 100 % is the end.
    `${ended} of ${items} · ${Math.floor((100 * ended) / items)} %`,
    `open ${open}`,
    ...Object.entries({ ...byStatus, ...byFailure }).map(([name, count]) => `${name} ${count}`),
    unknownDeliveries > 0 && `unknown deliveries ${unknownDeliveries}`,
    (state === 'running' || state === 'paused') && message,
  ];
  return parts.filter(Boolean).join(' · ');
}

/** However a batch has ended or stands, that is a result, and goes to stdout. */
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
  session.exitCode = EXIT_CODE_BY_STATE[view.state] ?? EXIT_CODE.completed;
  printBatch(session, batchId, view);
  if (!session.isJson) session.printStatus(`each item   ${session.command('batch', 'results', batchId)}`);
}

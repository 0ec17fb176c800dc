import type { FollowUpRequest } from '../../../src/core/request';
import type { FollowUpCaller } from '../../harness/following';

/** The input of one batch of the soak: its requests, and what the service does to some of them. */
export interface SoakFile {
  readonly batchId: string;
  readonly requests: readonly FollowUpRequest[];
}

const ITEMS = 14;

/** Fills more than a third of a page, so that a batch has some pages. */
const LARGE = 'x'.repeat(200 * 1_024);

export const TIMES: Partial<FollowUpRequest> = {
  deadline: '30s',
  polling: { initial: '300ms', growth: 0.2, maximum: '1s', jitter: 0.2 },
  reconcile: '2s',
  settle: '500ms',
  confirm: '1s',
};

/**
 * Each item has a prompt of its own, and all but every fifth one, which follows the item before it, a job of its own; every
 * third one has a name of its own, which others may give as well.
 */
export function soakFile({ sandbox }: FollowUpCaller, batchId: string, random: () => number): SoakFile {
  let last = { projectId: '', jobId: '' };
  const requests = Array.from({ length: ITEMS }, (_, index): FollowUpRequest => {
    const turn = { durationMs: Math.round(200 + 2_500 * random()) };
    if (index % 5 !== 4) last = sandbox.addJob({ projectId: `project-${index % 3}`, turn });
    const { projectId, jobId } = last;
    const once = { projectId, jobId, operation: 'message', times: 1 } as const;
    const chance = random();
    if (chance < 0.15) sandbox.setFault({ name: 'status', ...once, parameters: { code: 422 } });
    else if (chance < 0.25) sandbox.setFault({ name: 'processed-then-reset', ...once });
    else if (chance < 0.35) sandbox.setFault({ name: 'http-429', ...once });
    return {
      projectId,
      jobId,
      prompt: `${batchId} item ${index}. ${index % 2 === 0 ? LARGE : ''}`,
      ...(index % 3 === 0 ? { requestId: `${batchId}-name-${index}` } : {}),
      ...TIMES,
    };
  });
  return { batchId, requests };
}

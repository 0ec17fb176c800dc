import type { FollowUpRequest } from '../../../src/contract/request';
import type { NewJob } from '../../../src/sandbox';

/** One follow-up of the soak: the job as it is before, and what is asked. */
export interface Part {
  readonly job: NewJob & { readonly projectId: string; readonly id: string };
  readonly asked: Pick<FollowUpRequest, 'onUnknownDelivery' | 'whenActive'>;
}

const PROJECTS = 10;

/**
 * `count` different jobs in ten projects: most at rest, some in a turn, some archived, which take no message; turns of a
 * moment, which nobody sees, to six seconds; and every policy. It depends on the seed alone.
 */
export function cast(count: number, random: () => number): Part[] {
  const oneOf = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T;
  return Array.from({ length: count }, (_, index) => ({
    job: {
      projectId: `project-${index % PROJECTS}`,
      id: `job-${index}`,
      status: oneOf([
        'completed',
        'completed',
        'completed',
        'completed',
        'failed',
        'active',
        'archived',
      ] as const),
      pullRequest: random() < 0.3,
      turn: {
        durationMs: Math.round(random() < 0.1 ? 50 : 500 + 5_500 * random()),
        outcome: oneOf(['pull-request', 'pull-request', 'new-pull-request', 'no-change', 'failed'] as const),
      },
    },
    asked: {
      onUnknownDelivery: oneOf(['fail', 'fail', 'fail', 'assume-delivered', 'resend', 'ask'] as const),
      whenActive: oneOf(['send', 'wait'] as const),
    },
  }));
}

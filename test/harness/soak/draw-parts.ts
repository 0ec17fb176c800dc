import type { FollowUpRequest } from '../../../src/core/request';
import type { FaultSetting, JobChange, NewJob } from '../../../sandbox';
import { seededRandom } from '../../../sandbox/random';
import { LAGGING, STRANGE } from './service';

/** One follow-up of the soak: the job as it is before, what is asked, and what people will do to it. */
export interface Part {
  readonly job: NewJob & { readonly projectId: string; readonly id: string };
  readonly asked: Pick<FollowUpRequest, 'onUnknownDelivery' | 'whenActive'>;
  readonly faults: readonly FaultSetting[];
  /** From the beginning of the soak, in milliseconds. */
  readonly startAfterMs: number;
  /** What somebody else does to the job right before the follow-up starts. */
  readonly before: readonly ChangeBefore[];
  readonly deeds: readonly Deed[];
  /** For what is decided while it runs. */
  readonly random: () => number;
}

/** A change by hand, and how long nothing follows. */
interface ChangeBefore {
  readonly change: JobChange;
  readonly pauseMs: number;
}

/** What somebody does to a follow-up or its job, so long after the one before it. */
export interface Deed {
  readonly kind: DeedKind;
  readonly afterMs: number;
}

/** How many follow-ups of a hundred meet each deed. */
const SHARES = {
  'poll-now': 20,
  'extend-deadline': 8,
  'limit-attempts': 15,
  'pause-send': 6,
  'reset-activity': 4,
  /** Somebody else begins a turn of the job. */
  'other-turn': 15,
  archive: 5,
  unarchive: 8,
  reset: 10,
  'reset-after-end': 4,
  cancel: 5,
} as const;
export type DeedKind = keyof typeof SHARES;

const PROJECTS = 10;

/** Five of eight jobs. */
const MOSTLY = Array<'completed'>(5).fill('completed');

/** Starts are spread, so that what happens to machines meets follow-ups at every point. */
const STARTS_MS = 15_000;

/** After a turn of somebody else right before the start: the look may show any of it, or none. */
const LONGEST_BEFORE_MS = 2_000;

/** A follow-up takes 15 to 40 s. */
const LONGEST_PAUSE_MS = 15_000;

/**
 * `count` different jobs in ten projects: most at rest, some in a turn, some archived, which take no message; turns of a
 * moment, which nobody sees, to six seconds; turns of others and archiving right before the start; every policy; and people
 * who interfere. It depends on `random` alone.
 */
export function drawParts(count: number, random: () => number): Part[] {
  const oneOf = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T;
  return Array.from({ length: count }, (_, index) => {
    const job = {
      projectId: `project-${index % PROJECTS}`,
      id: `job-${index}`,
      status: oneOf([...MOSTLY, 'failed', 'active', 'archived'] as const),
      pullRequest: random() < 0.3,
      turn: {
        durationMs: Math.round(random() < 0.1 ? 50 : 500 + 5_500 * random()),
        outcome: oneOf(['pull-request', 'pull-request', 'new-pull-request', 'no-change', 'failed'] as const),
      },
    };
    const faults = [...(random() < 0.3 ? [LAGGING] : []), ...(random() < 0.1 ? [STRANGE] : [])];
    return {
      job,
      asked: {
        onUnknownDelivery: oneOf(['fail', 'fail', 'assume-delivered', 'resend', 'ask', 'ask'] as const),
        whenActive: oneOf(['send', 'wait', 'wait', 'reject'] as const),
      },
      faults: faults.map((fault) => ({ ...fault, projectId: job.projectId, jobId: job.id })),
      startAfterMs: Math.round(random() * STARTS_MS),
      before: changesBefore(job.status, random),
      deeds: deeds(random),
      random: seededRandom(Math.floor(random() * 2 ** 31)),
    };
  });
}

/** A turn that ends in either status, an archiving, one that is taken back, or nothing. */
function changesBefore(
  atRest: 'completed' | 'failed' | 'active' | 'archived',
  random: () => number,
): ChangeBefore[] {
  const chance = random();
  const statuses: readonly NonNullable<JobChange['status']>[] =
    chance < 0.35
      ? ['active', random() < 0.5 ? 'completed' : 'failed']
      : chance < 0.4
        ? ['archived']
        : chance < 0.5
          ? ['archived', atRest === 'failed' ? 'failed' : 'completed']
          : [];
  return statuses.map((status) => ({
    change: { status },
    pauseMs: Math.round(random() * LONGEST_BEFORE_MS),
  }));
}

function deeds(random: () => number): Deed[] {
  const kinds = Object.keys(SHARES) as DeedKind[];
  const chosen = kinds.filter((kind) => random() * 100 < SHARES[kind]);
  return chosen
    .map((kind) => ({ kind, order: kind === 'reset-after-end' ? 1 : random() }))
    .sort((one, other) => one.order - other.order)
    .map(({ kind }) => ({ kind, afterMs: Math.round(random() ** 2 * LONGEST_PAUSE_MS) }));
}

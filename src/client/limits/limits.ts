import type { Client } from '@temporalio/client';
import { optionalTsToDate, optionalTsToMs } from '@temporalio/common/lib/time';
import { formatRate, type RateText } from '../../contract/rate';
import { LimitsError } from '../errors';
import { grpcError } from '../grpc-status';
import { type CheckedChange, checkChange, isEmpty, type LimitsChange, type QueueChange } from './change';

/** A limit that is set. Who set it when, the server tells of those that were set through its API. */
export interface Limit {
  readonly rate: RateText;
  readonly perSecond: number;
  readonly setBy: string | null;
  readonly setAt: string | null;
  readonly reason: string | null;
}

/** The limits of one task queue, and what waits in it. */
export interface QueueLimits {
  readonly taskQueue: string;
  /** All projects together; null for no limit. */
  readonly total: Limit | null;
  /** Each project, times its weight; null for no limit. */
  readonly perProject: Limit | null;
  /** By fairness key, which is the project id or, for one beyond 64 bytes, `hash-…` (src/contract/fairness.ts). */
  readonly weights: Readonly<Record<string, number>>;
  /** About how many tasks wait for a worker or for a limit, and the age of the oldest in milliseconds. */
  readonly waiting: { readonly tasks: number; readonly oldestMs: number };
}

export interface Limits {
  readonly sends: QueueLimits;
  readonly reads: QueueLimits;
}

/** The task queues of the two kinds of requests to the agent service. */
export interface LimitedQueues {
  readonly sends: string;
  readonly reads: string;
}

/** The enum value TASK_QUEUE_TYPE_ACTIVITY of Temporal's API, whose package is no dependency of ours. */
const ACTIVITY_TASKS = 2;

/** One exchange with the server. */
const CALL_TIMEOUT_MS = 10_000;

/** @throws LimitsError when the server tells no limits */
export async function readLimits(client: Client, queues: LimitedQueues): Promise<Limits> {
  const [sends, reads] = await Promise.all([
    readQueue(client, queues.sends),
    readQueue(client, queues.reads),
  ]);
  return { sends, reads };
}

/**
 * Sets limits in the server's configuration of the task queues, where they hold at once for all workers.
 *
 * @throws InvalidLimitsError before anything is changed; LimitsError when the server does not take them, which says what
 *   has been changed by then
 */
export async function changeLimits(
  client: Client,
  queues: LimitedQueues,
  change: LimitsChange,
): Promise<Limits> {
  await applyChange(client, queues, checkChange(change));
  return readLimits(client, queues);
}

/** Removes every limit and every weight of both queues, whoever set them. @throws LimitsError */
export async function removeLimits(client: Client, queues: LimitedQueues, reason: string): Promise<Limits> {
  const before = await readLimits(client, queues);
  const removal = ({ total, perProject, weights }: QueueLimits): QueueChange => ({
    ...(total === null ? {} : { total: null }),
    ...(perProject === null ? {} : { perProject: null }),
    weights: new Map(Object.keys(weights).map((key) => [key, null])),
  });
  await applyChange(client, queues, { sends: removal(before.sends), reads: removal(before.reads), reason });
  return readLimits(client, queues);
}

import type { Client } from '@temporalio/client';
import { LimitsError } from '../errors';
import { checkChange, isEmpty, type LimitsChange, type QueueChange } from './change';
import { type QueueConfig, type QueueLimits, readQueue, updateQueue, withConfig } from './queue-config';

/** The limits of the two kinds of requests to the agent service; each kind has a task queue of its own. */
export interface Limits {
  readonly sends: QueueLimits;
  readonly reads: QueueLimits;
}

/** The task queues of the two kinds, by name. */
export interface LimitedQueues {
  readonly sends: string;
  readonly reads: string;
}

/** @throws LimitsError when the server tells no limits */
export async function readLimits(client: Client, queues: LimitedQueues): Promise<Limits> {
  const [sends, reads] = await Promise.all([
    readQueue(client, queues.sends),
    readQueue(client, queues.reads),
  ]);
  return { sends, reads };
}

/**
 * Sets limits in the server's configuration of the task queues, where they hold for all workers within a second or so.
 *
 * @throws InvalidLimitsError before anything is changed; LimitsError when the server does not take them, which says what
 *   has been changed by then
 */
export async function setLimits(
  client: Client,
  queues: LimitedQueues,
  change: LimitsChange,
): Promise<Limits> {
  const { sends, reads, reason } = checkChange(change);
  return update(client, queues, { sends, reads }, reason);
}

/** Removes every limit and every weight of both queues, whoever has set them. @throws LimitsError */
export async function clearLimits(client: Client, queues: LimitedQueues): Promise<Limits> {
  const { sends, reads } = await readLimits(client, queues);
  const changes = { sends: removalOf(sends), reads: removalOf(reads) };
  return update(client, queues, changes, 'cleared by agent-follow-up');
}

function removalOf({ total, perProject, weights }: QueueLimits): QueueChange {
  return {
    ...(total === null ? {} : { total: null }),
    ...(perProject === null ? {} : { perProject: null }),
    weights: new Map(Object.keys(weights).map((key) => [key, null])),
  };
}

/** One call for each queue that changes: the server has no operation for both. */
async function update(
  client: Client,
  queues: LimitedQueues,
  changes: Readonly<Record<keyof LimitedQueues, QueueChange>>,
  reason: string,
): Promise<Limits> {
  const done: string[] = [];
  const configs: Partial<Record<keyof LimitedQueues, QueueConfig>> = {};
  for (const kind of ['sends', 'reads'] as const) {
    if (isEmpty(changes[kind])) continue;
    try {
      configs[kind] = await updateQueue(client, queues[kind], changes[kind], reason);
    } catch (error) {
      if (!(error instanceof LimitsError) || done.length === 0) throw error;
      throw new LimitsError(`${error.message} The limits of the ${done.join()} were changed before.`, {
        cause: error,
      });
    }
    done.push(kind);
  }
  const { sends, reads } = await readLimits(client, queues);
  // What describes a queue hears of a change a moment later than the one who made it.
  return { sends: withConfig(sends, configs.sends), reads: withConfig(reads, configs.reads) };
}

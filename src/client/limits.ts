import type { Client } from '@temporalio/client';
import { FieldReader } from '../core/field-reader';
import { fairnessKey } from '../core/ids';
import type { Problem } from '../core/problem';
import { quote } from '../core/text';
import { parseRate, type RateText } from '../core/units';
import {
  type QueueChange,
  type QueueConfig,
  type QueueLimits,
  readQueue,
  updateQueue,
  withConfig,
} from './task-queue-config';
import { InvalidRequestError } from './errors';

/** The limits of the two kinds of requests to the agent service; each kind has a task queue of its own. */
export interface Limits {
  readonly sends: QueueLimits;
  readonly reads: QueueLimits;
}

/** The task queues of the two kinds, by name. */
interface LimitedQueues {
  readonly sends: string;
  readonly reads: string;
}

/** The limits of sends and reads. The Temporal server keeps them. Reached as `FollowUpClient.limits`. */
export class LimitsClient {
  readonly #client: Client;
  readonly #queues: LimitedQueues;

  constructor(client: Client, queues: LimitedQueues) {
    this.#client = client;
    this.#queues = queues;
  }

  /** The limits that hold, and about how many tasks wait. @throws FollowUpError `LIMITS_UNAVAILABLE` when the server tells no limits */
  async get(): Promise<Limits> {
    const [sends, reads] = await Promise.all([
      readQueue(this.#client, this.#queues.sends),
      readQueue(this.#client, this.#queues.reads),
    ]);
    return { sends, reads };
  }

  /**
   * Sets limits that hold for all workers within a second or so; what is left out stays as it is. Limits per project and
   * weights need fairness on the server, which does not tell whether it is on (docs/operations.md).
   *
   * @returns the limits that hold now
   * @throws InvalidRequestError with every problem, before anything is changed; `LIMITS_UNAVAILABLE` when the server does
   *   not take the change for the queue that it names (sends are changed before reads)
   */
  async set(change: LimitsChange): Promise<Limits> {
    return this.update(checkChange(change));
  }

  /** Removes every limit and every weight of both queues, whoever has set them. @throws FollowUpError `LIMITS_UNAVAILABLE` */
  async clear(): Promise<Limits> {
    const { sends, reads } = await this.get();
    return this.update({ sends: removalOf(sends), reads: removalOf(reads) });
  }

  /** One call for each queue that changes: the server has no operation for both. */
  private async update(changes: Readonly<Record<keyof LimitedQueues, QueueChange>>): Promise<Limits> {
    const change = async (kind: keyof LimitedQueues): Promise<QueueConfig | undefined> =>
      isEmpty(changes[kind]) ? undefined : updateQueue(this.#client, this.#queues[kind], changes[kind]);
    const changed = { sends: await change('sends'), reads: await change('reads') };
    const { sends, reads } = await this.get();
    // What describes a queue hears of a change a moment later than the one who made it.
    return { sends: withConfig(sends, changed.sends), reads: withConfig(reads, changed.reads) };
  }
}

function removalOf({ total, perProject, weights }: QueueLimits): QueueChange {
  return {
    ...(total === null ? {} : { total: null }),
    ...(perProject === null ? {} : { perProject: null }),
    weights: new Map(Object.keys(weights).map((key) => [key, null])),
  };
}

/** What is to hold from now on, across all workers. What is left out stays as it is; `off` removes it. */
export interface LimitsChange {
  /** Messages of each project. */
  readonly sendsPerProject?: RateText | 'off';
  /** Reads of the jobs of each project. */
  readonly readsPerProject?: RateText | 'off';
  /** Messages of all projects together. */
  readonly sendsTotal?: RateText | 'off';
  /** Reads of all projects together. */
  readonly readsTotal?: RateText | 'off';
  /**
   * By project id, how much more than another one a project gets, 0.001 to 1000: its share where projects compete, and a
   * factor to its own limit. Without one a project's weight is 1.
   */
  readonly projectWeights?: Readonly<Record<string, number | 'off'>>;
}

interface CheckedChange {
  readonly sends: QueueChange;
  readonly reads: QueueChange;
}

/** The server takes a weight below this one for this one (source: server 1.31, matching/fairness_util.go). */
const MIN_WEIGHT = 0.001;
/** Beyond it a project would leave the others a thousandth, for which there are limits. */
const MAX_WEIGHT = 1_000;

/** @throws InvalidRequestError with every problem, before anything is changed */
export function checkChange(change: LimitsChange): CheckedChange {
  const problems: Problem[] = [];
  const rate = (name: RateField): number | null | undefined => {
    const given = change[name];
    if (given === undefined) return undefined;
    if (given === 'off') return null;
    const parsed = parseRate(given);
    if ('perSecond' in parsed) return parsed.perSecond;
    problems.push({ field: name, text: parsed.problem });
    return undefined;
  };
  const weights = checkWeights(change.projectWeights ?? {}, problems);
  const sends = queueChange(rate('sendsTotal'), rate('sendsPerProject'), weights);
  const reads = queueChange(rate('readsTotal'), rate('readsPerProject'), weights);
  if (problems.length === 0 && isEmpty(sends) && isEmpty(reads)) {
    problems.push({ field: 'limits', text: 'no change given; give at least one limit or project weight' });
  }
  if (problems.length > 0) throw new InvalidRequestError(problems);
  return { sends, reads };
}

function isEmpty({ total, perProject, weights }: QueueChange): boolean {
  return total === undefined && perProject === undefined && weights.size === 0;
}

type RateField = 'sendsPerProject' | 'readsPerProject' | 'sendsTotal' | 'readsTotal';

function queueChange(
  total: number | null | undefined,
  perProject: number | null | undefined,
  weights: QueueChange['weights'],
): QueueChange {
  return {
    ...(total === undefined ? {} : { total }),
    ...(perProject === undefined ? {} : { perProject }),
    weights,
  };
}

function checkWeights(
  given: Readonly<Record<string, number | 'off'>>,
  problems: Problem[],
): ReadonlyMap<string, number | null> {
  const weights = new Map<string, number | null>();
  for (const [projectId, weight] of Object.entries(given)) {
    const found = problems.length;
    new FieldReader({ [projectId]: projectId }, 'projectWeights.', problems).id(projectId);
    if (weight !== 'off' && !isWeight(weight)) {
      const text = `must be a number from ${MIN_WEIGHT} to ${MAX_WEIGHT}, or off; it is ${quote(weight)}`;
      problems.push({ field: `projectWeights.${projectId}`, text });
    }
    if (problems.length === found) weights.set(fairnessKey(projectId), weight === 'off' ? null : weight);
  }
  return weights;
}

/** Callers in JavaScript and the command line give anything. */
function isWeight(value: unknown): value is number {
  return typeof value === 'number' && value >= MIN_WEIGHT && value <= MAX_WEIGHT;
}

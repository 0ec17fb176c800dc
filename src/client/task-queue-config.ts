import type { Client } from '@temporalio/client';
import { ACTIVITY_TASKS, optionalTsToMs } from '../temporal/sdk-internals';
import { formatRate, type RateText } from '../core/units';
import { grpcError, hasGrpcStatus } from '../temporal/grpc-status';
import { FollowUpError } from '../core/errors';

/** A limit that is set. */
export interface Limit {
  readonly rate: RateText;
  readonly perSecond: number;
}

/** The limits of one task queue, and what waits in it. */
export interface QueueLimits {
  readonly taskQueue: string;
  /** All projects together; null for no limit. */
  readonly total: Limit | null;
  /** Each project, times its weight; null for no limit. */
  readonly perProject: Limit | null;
  /** By fairness key, which is the project id or, for one beyond 64 bytes, `hash-…` (`fairnessKey` in src/core/ids.ts). */
  readonly weights: Readonly<Record<string, number>>;
  /** About how many tasks wait for a worker or for a limit. */
  readonly waiting: number;
  /** For how long the oldest of them waits, in milliseconds. */
  readonly oldestMs: number;
}

type Service = Client['workflowService'];
/** As the server has it. */
export type QueueConfig = NonNullable<Awaited<ReturnType<Service['describeTaskQueue']>>['config']>;
type RateConfig = QueueConfig['queueRateLimit'];

/** One exchange with the server. */
const CALL_TIMEOUT_MS = 10_000;

/** @throws FollowUpError `LIMITS_UNAVAILABLE` when the server tells no limits of task queues */
export async function readQueue(client: Client, taskQueue: string): Promise<QueueLimits> {
  const described = await call(client, taskQueue, 'read', (service) =>
    service.describeTaskQueue({
      namespace: client.options.namespace,
      taskQueue: { name: taskQueue },
      taskQueueType: ACTIVITY_TASKS,
      reportConfig: true,
      reportStats: true,
    }),
  );
  // An older server leaves out what it does not know of, without a word.
  if (!described.effectiveRateLimit && !described.config)
    throw new FollowUpError('LIMITS_UNAVAILABLE', tooOld(taskQueue));
  const { config, stats } = described;
  const empty = {
    taskQueue,
    total: null,
    perProject: null,
    weights: {},
    waiting: Number(stats?.approximateBacklogCount ?? 0),
    oldestMs: optionalTsToMs(stats?.approximateBacklogAge) ?? 0,
  };
  return withConfig(empty, config ?? undefined);
}

/** `limits` with those of a configuration; unchanged without one. */
export function withConfig(limits: QueueLimits, config: QueueConfig | undefined): QueueLimits {
  if (config === undefined) return limits;
  return {
    ...limits,
    total: limitOf(config.queueRateLimit),
    perProject: limitOf(config.fairnessKeysRateLimitDefault),
    weights: Object.fromEntries(
      Object.entries(config.fairnessWeightOverrides ?? {}).map(([key, weight]) => [key, short(weight)]),
    ),
  };
}

/** @returns the whole configuration as it is now @throws FollowUpError `LIMITS_UNAVAILABLE` when the server does not take the change */
export async function updateQueue(
  client: Client,
  taskQueue: string,
  { total, perProject, weights }: QueueChange,
): Promise<QueueConfig> {
  const overrides = [...weights];
  const { config } = await call(client, taskQueue, 'set', (service) =>
    service.updateTaskQueueConfig({
      namespace: client.options.namespace,
      identity: client.options.identity,
      taskQueue,
      taskQueueType: ACTIVITY_TASKS,
      ...(total === undefined ? {} : { updateQueueRateLimit: rateUpdate(total) }),
      ...(perProject === undefined ? {} : { updateFairnessKeyRateLimitDefault: rateUpdate(perProject) }),
      setFairnessWeightOverrides: Object.fromEntries(
        overrides.filter((each): each is [string, number] => each[1] !== null),
      ),
      unsetFairnessWeightOverrides: overrides.filter(([, weight]) => weight === null).map(([key]) => key),
    }),
  );
  return config ?? {};
}

/** Without a rate, the server removes the limit. */
function rateUpdate(perSecond: number | null) {
  return perSecond === null ? {} : { rateLimit: { requestsPerSecond: perSecond } };
}

/** Of a limit that was removed, the server keeps some facts, and no rate. */
function limitOf(config: RateConfig): Limit | null {
  const perSecond = config?.rateLimit?.requestsPerSecond;
  if (perSecond === undefined || perSecond === null) return null;
  return { rate: formatRate(perSecond), perSecond: short(perSecond) };
}

/** A float of 32 bits without the digits that it only seems to have. */
function short(float: number): number {
  return Number(float.toPrecision(6));
}

async function call<T>(
  client: Client,
  taskQueue: string,
  what: 'read' | 'set',
  ask: (service: Service) => Promise<T>,
): Promise<T> {
  try {
    return await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () => ask(client.workflowService));
  } catch (error) {
    const refusal = grpcError(error);
    if (hasGrpcStatus(error, 'UNIMPLEMENTED'))
      throw new FollowUpError('LIMITS_UNAVAILABLE', tooOld(taskQueue), { cause: error });
    if (!hasGrpcStatus(error, 'PERMISSION_DENIED', 'INVALID_ARGUMENT', 'FAILED_PRECONDITION')) throw error;
    const message = `The limits of the task queue ${JSON.stringify(taskQueue)} can't be ${what}: ${refusal?.words ?? ''}.`;
    throw new FollowUpError('LIMITS_UNAVAILABLE', message, { cause: error });
  }
}

function tooOld(taskQueue: string): string {
  return (
    `This Temporal server has no limits of task queues (asked for ${JSON.stringify(taskQueue)}): it lacks the operation ` +
    'UpdateTaskQueueConfig, which servers have since 2025. Update the server.'
  );
}

/** A change to one task queue in the server's terms; null removes, undefined leaves as it is. */
export interface QueueChange {
  readonly total?: number | null;
  readonly perProject?: number | null;
  /** By fairness key. */
  readonly weights: ReadonlyMap<string, number | null>;
}

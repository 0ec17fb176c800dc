import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Client,
  encodeScheduleOverlapPolicy,
  ScheduleAlreadyRunning,
  type ScheduleDescription,
  type ScheduleHandle as TemporalScheduleHandle,
  type ScheduleOptions,
  type ScheduleOverlapPolicy,
} from '@temporalio/client';
import { BATCH_PRIORITY_KEY, batchSummary } from '../core/batch/items';
import type { BatchInput } from '../core/batch/state';
import { BATCH_WORKFLOW } from '../core/names';
import { isRecord } from '../core/checks';
import { batchIdOf, batchWorkflowId } from '../core/ids';
import { markdownCode } from '../core/text';
import { grpcError, hasGrpcStatus } from '../temporal/grpc-status';
import { msNumberToTs, withConflictToken } from '../temporal/sdk-internals';
import {
  type BatchItems,
  type CheckedBatch,
  checkRunOptions,
  checkSchedule,
  type RunOptions,
  scheduleInput,
} from './batch/check';
import type { CallOptions, Calls } from './call';
import { ConflictError, InvalidRequestError, notFound, scheduleConflict } from './errors';
import { checkName } from './options';

/** How each batch of a schedule runs. */
export interface FiringOptions extends RunOptions {
  /** Where the batches run. @default the client's */
  readonly taskQueue?: string | undefined;
}

/** When a schedule fires, in Temporal's own types, and how each of its batches runs. */
export interface NewScheduleOptions
  extends
    Pick<ScheduleOptions, 'spec' | 'policies' | 'state' | 'memo' | 'typedSearchAttributes'>,
    FiringOptions,
    CallOptions {}

const NEW_OPTIONS = ['taskQueue', 'spec', 'policies', 'state', 'memo', 'typedSearchAttributes'];

/** A restart loses no firing, and an outage's are not sent in the middle of the day. Temporal's own default is a year. */
const CATCHUP_WINDOW = '10m';

/** What has become of a trigger. */
export interface Triggered {
  /**
   * `skipped`: a batch of the schedule runs, and the overlap policy does not start another. `waiting`: the batch was not
   * seen within 5 s; it may wait for one that runs.
   */
  readonly outcome: 'started' | 'skipped' | 'waiting';
  /** The batch that this trigger has started, and no other. */
  readonly batchId: string | null;
}

/** Null removes a field. */
type Change<Fields> = { readonly [Name in keyof Fields]?: Fields[Name] | null | undefined };

/** What is changed. Whatever is left out stays as it is, also what somebody else has set. */
export interface ScheduleChange extends FiringOptions {
  /** What it sends from the next firing on; replaced as a whole, with its options. */
  readonly items?: BatchItems;
  /** `calendars`, `cronExpressions` and `intervals` are replaced together, because the server merges them. */
  readonly spec?: Change<ScheduleOptions['spec']>;
  readonly policies?: Change<NonNullable<ScheduleOptions['policies']>>;
  readonly state?: Change<
    Pick<NonNullable<ScheduleOptions['state']>, 'paused' | 'note' | 'remainingActions'>
  >;
}

/**
 * Temporal's own handle of a schedule, with two methods that know its batches. Both throw NotFoundError if there is no
 * schedule of this id, or if it starts something else.
 */
export interface ScheduleHandle extends Omit<TemporalScheduleHandle, 'trigger' | 'update'> {
  /**
   * Fires now, even if the schedule is paused, and waits up to 5 s to see what becomes of it.
   *
   * @param overlap @default the schedule's own policy
   * @throws ConflictError when somebody has changed the workflow id of its batches
   */
  trigger(overlap?: ScheduleOverlapPolicy, options?: CallOptions): Promise<Triggered>;
  /**
   * Changes what is given; what others change at the same moment stays. A batch that runs continues as it was.
   *
   * @throws InvalidRequestError with every problem, also for what the server refuses
   */
  update(change: ScheduleChange, options?: CallOptions): Promise<void>;
}

/** Batches at set times: Temporal's schedules, whose action starts a batch. Reached as `FollowUpClient.schedules`. */
export class ScheduleClient {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /**
   * Creates a schedule. Each firing is a batch, named after the schedule and its time: `nightly-2026-11-21T03:00:00Z`.
   *
   * @param scheduleId 1 to 79 letters, digits, `-`, `.`, `_` and `~`
   * @param requests at most 1 MiB as JSON, kept in the schedule. They have no `requestId`, because each firing sends anew.
   * @param options `policies.catchupWindow` is `10m` unless given
   * @throws InvalidRequestError with every problem, also for what the server refuses
   * @throws ConflictError when a schedule has this id; use {@link ScheduleHandle.update} to change it
   */
  async create(
    scheduleId: string,
    requests: BatchItems,
    { signal, timeout, ...options }: NewScheduleOptions,
  ): Promise<ScheduleHandle> {
    const noSpec = { field: 'spec', text: 'is missing; it says when the schedule fires' };
    checkRunOptions(options, NEW_OPTIONS, isRecord(options.spec) ? [] : [noSpec]);
    const batch = await checkSchedule(scheduleId, requests);
    const { concurrency, tolerate, taskQueue = this.#calls.taskQueue, ...rest } = options;
    const action = {
      type: 'startWorkflow' as const,
      workflowType: BATCH_WORKFLOW,
      taskQueue,
      // Temporal appends the time of each firing.
      workflowId: batchWorkflowId(scheduleId),
      args: [withGiven({}, { ...scheduleInput(batch), concurrency, tolerate })] as [BatchInput],
      // The SDK's type lacks it; it is sent nevertheless.
      priority: { priorityKey: BATCH_PRIORITY_KEY },
      staticSummary: summaryOf(scheduleId, batch),
    };
    // The SDK takes a field that is undefined for one that is set.
    const spec = withGiven<ScheduleOptions['spec']>({}, rest.spec);
    const policies = withGiven({ catchupWindow: CATCHUP_WINDOW }, rest.policies ?? {});
    const state = withGiven({}, rest.state ?? {});
    await this.#calls.run({ signal, timeout }, async (client) => {
      try {
        await client.schedule.create({ ...rest, spec, policies, state, scheduleId, action });
      } catch (error) {
        throw error instanceof ScheduleAlreadyRunning ? scheduleConflict(scheduleId) : inFieldWords(error);
      }
    });
    return this.getHandle(scheduleId);
  }

  /** The handle of a schedule, whether it exists or not. @throws InvalidRequestError */
  getHandle(scheduleId: string): ScheduleHandle {
    checkName('scheduleId', scheduleId);
    const calls = this.#calls;
    const handle = Object.assign(calls.client.schedule.getHandle(scheduleId), {
      trigger: (overlap?: ScheduleOverlapPolicy, options: CallOptions = {}) =>
        calls.run(options, (client, signal) => trigger(client, scheduleId, overlap, signal)),
      update: (change: ScheduleChange, options: CallOptions = {}) =>
        calls.run(options, (client) => update(client, scheduleId, change)),
    });
    // A log that shows the handle is to show nothing of the connection, which holds the key.
    return Object.defineProperty(handle, 'client', { enumerable: false });
  }
}

/** Looks whose schedule it is, without decoding what may be another service's. @returns the workflow id of its batches */
async function batchesOf(client: Client, scheduleId: string): Promise<string> {
  const { namespace } = client.options;
  try {
    const { schedule } = await client.workflowService.describeSchedule({ namespace, scheduleId });
    const { workflowType, workflowId } = schedule?.action?.startWorkflow ?? {};
    const type = workflowType?.name ?? 'nothing';
    const why = `the one of this id does not start follow-up batches; it starts ${JSON.stringify(type)}`;
    if (type !== BATCH_WORKFLOW) throw notFound('schedule', scheduleId, namespace, why);
    return workflowId ?? '';
  } catch (error) {
    throw hasGrpcStatus(error, 'NOT_FOUND') ? notFound('schedule', scheduleId, namespace) : error;
  }
}

async function update(client: Client, scheduleId: string, change: ScheduleChange): Promise<void> {
  const { items: requests, spec, policies, state, ...firing } = change;
  await batchesOf(client, scheduleId);
  checkRunOptions(firing, ['taskQueue']);
  const batch = requests === undefined ? undefined : await checkSchedule(scheduleId, requests);
  const { calendars, cronExpressions, intervals } = spec ?? {};
  const hasTiming = (calendars ?? cronExpressions ?? intervals) !== undefined;
  const { taskQueue, ...settings } = firing;
  try {
    await withConflictToken(client, scheduleId, (schedule) =>
      schedule.update((now) => ({
        spec: withChange<ScheduleOptions['spec']>(
          hasTiming ? { ...now.spec, calendars: [], intervals: [] } : now.spec,
          spec,
        ),
        policies: withChange(now.policies, policies),
        state: withChange(now.state, state),
        action: {
          ...now.action,
          taskQueue: taskQueue ?? now.action.taskQueue,
          // The typed ones are the same, and the SDK takes one of the two.
          // eslint-disable-next-line @typescript-eslint/no-deprecated -- to leave it out
          searchAttributes: {},
          args: argsOf(now, { ...(batch && scheduleInput(batch)), ...settings }),
          ...(batch && { staticSummary: summaryOf(scheduleId, batch) }),
        },
      })),
    );
  } catch (error) {
    throw inFieldWords(error);
  }
}

/** The action's arguments with a change; whatever else somebody has set stays. */
function argsOf({ action }: ScheduleDescription, change: object): [BatchInput] {
  const [input, ...further] = (action.args ?? []) as unknown[];
  return [withGiven(isRecord(input) ? input : {}, change), ...further] as unknown as [BatchInput];
}

function summaryOf(scheduleId: string, { items }: CheckedBatch): string {
  return `${batchSummary(items.length)} by the schedule ${markdownCode(scheduleId)}`;
}

const SEEN_WITHIN_MS = 5_000;

/**
 * The id of a batch holds the second in which it is due, and the server silently drops a second firing in that second. So
 * the trigger is given a time of its own, to the nanosecond, by which its firing is recognized (measured, server 1.32.0).
 */
async function trigger(
  client: Client,
  scheduleId: string,
  overlap: ScheduleOverlapPolicy | undefined,
  signal: AbortSignal,
): Promise<Triggered> {
  const { workflowService, options } = client;
  const { namespace, identity } = options;
  const [batches, expected] = [await batchesOf(client, scheduleId), batchWorkflowId(scheduleId)];
  if (batches !== expected) {
    const message = `The batches of the schedule ${JSON.stringify(scheduleId)} have the workflow id ${JSON.stringify(batches)}, which no batch id names. Nothing was started. Set it back to ${JSON.stringify(expected)}.`;
    throw new ConflictError('CONFLICT', message);
  }
  const schedule = client.schedule.getHandle(scheduleId);
  for (;;) {
    const before = await schedule.describe();
    const now = Date.now();
    const nanos = (now % 1_000) * 1_000_000 + randomInt(1_000_000);
    const triggerImmediately = {
      scheduledTime: { ...msNumberToTs(now), nanos },
      overlapPolicy: encodeScheduleOverlapPolicy(overlap) ?? null,
    };
    const requestId = `${now}-${nanos}`;
    await workflowService.patchSchedule({
      namespace,
      scheduleId,
      identity,
      requestId,
      patch: { triggerImmediately },
    });
    // With a buffering policy, what the server counts as skipped may be another firing.
    const maySkip = (overlap ?? before.policies.overlap) === 'SKIP';
    const second = `-${new Date(now).toISOString().slice(0, 19)}Z`;
    let isTaken = false;
    while (!isTaken && Date.now() < now + SEEN_WITHIN_MS) {
      const { info, raw } = await schedule.describe();
      const sameSecond = (raw.info?.recentActions ?? []).filter(
        ({ startWorkflowResult }) => startWorkflowResult?.workflowId?.endsWith(second) === true,
      );
      const own = sameSecond.find(({ scheduleTime }) => scheduleTime?.nanos === nanos);
      if (own !== undefined)
        return { outcome: 'started', batchId: batchIdOf(own.startWorkflowResult?.workflowId ?? '') };
      if (maySkip && info.numActionsSkippedOverlap > before.info.numActionsSkippedOverlap)
        return { outcome: 'skipped', batchId: null };
      // Another firing has this second, so that this one never starts.
      isTaken = sameSecond.length > 0;
      await sleep(isTaken ? 1_000 - (Date.now() % 1_000) : SEEN_WITHIN_MS / 50, undefined, { signal });
    }
    if (!isTaken) return { outcome: 'waiting', batchId: null };
  }
}

/** An object with those fields of another one that are not undefined. */
function withGiven<Fields extends object>(before: Fields, change: object): Fields {
  const given = Object.entries(change).filter(([, value]) => value !== undefined);
  return { ...before, ...Object.fromEntries(given) };
}

function withChange<Fields extends object>(now: Fields, change: Change<Fields> = {}): Fields {
  const all = Object.entries(withGiven(now, change));
  return Object.fromEntries(all.filter(([, value]) => value !== null)) as Fields;
}

/** What the SDK or the server refuses of a schedule, as a problem of its field; any other error as it is. */
function inFieldWords(error: unknown): unknown {
  // The SDK makes a TypeError of "Invalid schedule spec: …".
  if (error instanceof TypeError)
    return new InvalidRequestError([{ field: 'spec', text: `is refused: ${error.message}` }]);
  const refused = grpcError(error);
  if (refused?.status !== 'INVALID_ARGUMENT') return error;
  return new InvalidRequestError([{ field: 'schedule', text: `the server refuses it: ${refused.words}` }]);
}

import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Backfill,
  type Client,
  encodeScheduleOverlapPolicy,
  ScheduleAlreadyRunning,
  ScheduleClient as TemporalScheduleClient,
  type ScheduleDescription,
  type ScheduleHandle as TemporalScheduleHandle,
  type ScheduleOptions,
  type ScheduleOverlapPolicy,
  type ScheduleSummary,
} from '@temporalio/client';
import { BATCH_WORKFLOW } from '../../core/batch/workflows';
import { isRecord } from '../../core/checks';
import { batchIdOf } from '../../core/ids';
import { grpcError, hasGrpcStatus } from '../../temporal/grpc-status';
import { msNumberToTs } from '../../temporal/sdk-internals';
import type { BatchItems } from '../batch/batch-client';
import type { CallOptions, Calls } from '../call';
import { InvalidRequestError, notFound, scheduleConflict } from '../errors';
import { withoutDecoding } from '../description';
import { checkName, checkRunOptions, type RunOptions } from '../run-options';
import { changedAction, checkItems, newAction, scheduleIdProblems, withGiven } from './action';

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
    const problems = scheduleIdProblems(scheduleId);
    if (!isRecord(options.spec))
      problems.push({ field: 'spec', text: 'is missing; it says when the schedule fires' });
    checkRunOptions(options, NEW_OPTIONS, problems);
    const items = await checkItems(scheduleId, requests);
    const { concurrency, tolerate, taskQueue = this.#calls.taskQueue, ...rest } = options;
    const action = newAction(scheduleId, { items, concurrency, tolerate, taskQueue });
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
    return new ScheduleHandle(this.#calls, scheduleId);
  }

  /** Schedules of follow-ups in the namespace, in no order; eventually consistent. Memos, which may be others', are not decoded. */
  list(options: CallOptions = {}): AsyncIterable<ScheduleSummary> {
    return this.#calls.each(options, listSchedules);
  }
}

async function* listSchedules(client: Client): AsyncGenerator<ScheduleSummary, void> {
  for await (const schedule of new TemporalScheduleClient(withoutDecoding(client)).list())
    if (schedule.action?.workflowType === BATCH_WORKFLOW) yield schedule;
}

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

const SEEN_WITHIN_MS = 5_000;

/**
 * A schedule of follow-ups: Temporal's `ScheduleHandle`, with `trigger` and `update` of its own. Every method throws
 * NotFoundError if there is no schedule of this id, or if it starts something else.
 */
export class ScheduleHandle {
  readonly #calls: Calls;

  constructor(
    calls: Calls,
    readonly scheduleId: string,
  ) {
    this.#calls = calls;
  }

  /** As Temporal describes it. */
  describe(options: CallOptions = {}): Promise<ScheduleDescription> {
    return this.run(options, (schedule) => schedule.describe());
  }

  /**
   * Fires now, even if the schedule is paused, and waits up to 5 s to see what becomes of it.
   *
   * @param overlap @default the schedule's own policy
   */
  trigger(overlap?: ScheduleOverlapPolicy, options: CallOptions = {}): Promise<Triggered> {
    return this.run(options, async (schedule, client, signal) => {
      for (;;) {
        const triggered = await fire(client, schedule, overlap, signal);
        if (triggered !== 'taken') return triggered;
        await sleep(1_000 - (Date.now() % 1_000), undefined, { signal });
      }
    });
  }

  /** It fires no more until it is unpaused, unless triggered; a batch that runs continues. */
  pause(note = 'paused by FollowUpClient', options: CallOptions = {}): Promise<void> {
    return this.run(options, (schedule) => schedule.pause(note));
  }

  unpause(note = 'unpaused by FollowUpClient', options: CallOptions = {}): Promise<void> {
    return this.run(options, (schedule) => schedule.unpause(note));
  }

  /**
   * Fires for the times of a range as if it passed now. The server starts no batch whose id exists, so a time whose batch
   * the namespace still has is left out.
   */
  backfill(ranges: Backfill | Backfill[], options: CallOptions = {}): Promise<void> {
    return this.run(options, (schedule) => schedule.backfill(ranges));
  }

  /**
   * Changes what is given. A batch that runs continues as it was.
   *
   * @throws InvalidRequestError with every problem, also for what the server refuses
   */
  update(change: ScheduleChange, options: CallOptions = {}): Promise<void> {
    const { items: requests, spec, policies, state, ...firing } = change;
    return this.run(options, async (schedule) => {
      checkRunOptions(firing, ['taskQueue']);
      const items = requests === undefined ? undefined : await checkItems(this.scheduleId, requests);
      const { calendars, cronExpressions, intervals } = spec ?? {};
      const hasTiming = (calendars ?? cronExpressions ?? intervals) !== undefined;
      try {
        await schedule.update((now) => ({
          spec: withChange<ScheduleOptions['spec']>(
            hasTiming ? { ...now.spec, calendars: [], intervals: [] } : now.spec,
            spec,
          ),
          policies: withChange(now.policies, policies),
          state: withChange(now.state, state),
          action: changedAction(now, { ...firing, items }),
        }));
      } catch (error) {
        throw inFieldWords(error);
      }
    });
  }

  /** Removes the schedule; a batch that runs continues. */
  delete(options: CallOptions = {}): Promise<void> {
    return this.run(options, async (schedule) => {
      await schedule.delete();
    });
  }

  /** Looks first whose schedule it is, without decoding what may be another service's. */
  private run<T>(
    options: CallOptions,
    work: (schedule: TemporalScheduleHandle, client: Client, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { scheduleId } = this;
    return this.#calls.run(options, async (client, signal) => {
      const { namespace } = client.options;
      try {
        const { schedule } = await client.workflowService.describeSchedule({ namespace, scheduleId });
        const type = schedule?.action?.startWorkflow?.workflowType?.name ?? 'nothing';
        const why = `the one of this id does not start follow-up batches; it starts ${JSON.stringify(type)}`;
        if (type !== BATCH_WORKFLOW) throw notFound('schedule', scheduleId, namespace, why);
      } catch (error) {
        throw hasGrpcStatus(error, 'NOT_FOUND') ? notFound('schedule', scheduleId, namespace) : error;
      }
      return work(client.schedule.getHandle(scheduleId), client, signal);
    });
  }
}

/**
 * The id of a batch holds the second in which it is due, and the server silently drops a second firing in that second. So
 * the trigger is given a time of its own, to the nanosecond, by which its firing is recognized (measured, server 1.32.0).
 *
 * @returns `taken` if another firing has this second, so that this one never starts
 */
async function fire(
  { workflowService, options: { namespace, identity } }: Client,
  schedule: TemporalScheduleHandle,
  overlap: ScheduleOverlapPolicy | undefined,
  signal: AbortSignal,
): Promise<Triggered | 'taken'> {
  const { scheduleId } = schedule;
  const before = await schedule.describe();
  const now = Date.now();
  const nanos = (now % 1_000) * 1_000_000 + randomInt(1_000_000);
  await workflowService.patchSchedule({
    namespace,
    scheduleId,
    identity,
    requestId: `${now}-${nanos}`,
    patch: {
      triggerImmediately: {
        scheduledTime: { ...msNumberToTs(now), nanos },
        overlapPolicy: encodeScheduleOverlapPolicy(overlap) ?? null,
      },
    },
  });
  const policy = overlap ?? before.policies.overlap;
  const maySkip = policy === 'SKIP' || policy === 'BUFFER_ONE';
  const second = `-${new Date(now).toISOString().slice(0, 19)}Z`;
  while (Date.now() < now + SEEN_WITHIN_MS) {
    const { info, raw } = await schedule.describe();
    const sameSecond = (raw.info?.recentActions ?? []).filter(
      ({ startWorkflowResult }) => startWorkflowResult?.workflowId?.endsWith(second) === true,
    );
    const own = sameSecond.find(({ scheduleTime }) => scheduleTime?.nanos === nanos);
    if (own !== undefined)
      return { outcome: 'started', batchId: batchIdOf(own.startWorkflowResult?.workflowId ?? '') };
    if (sameSecond.length > 0) return 'taken';
    if (maySkip && info.numActionsSkippedOverlap > before.info.numActionsSkippedOverlap)
      return { outcome: 'skipped', batchId: null };
    await sleep(SEEN_WITHIN_MS / 50, undefined, { signal });
  }
  return { outcome: 'waiting', batchId: null };
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

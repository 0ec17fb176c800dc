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
import { BATCH_PRIORITY, batchIdProblem, batchSummary, MAX_INPUT_BYTES } from '../batch/items';
import type { BatchInput } from '../batch/memo';
import { isRecord, type Problem } from '../core/checks';
import { batchIdOf, batchWorkflowId } from '../core/ids';
import { BATCH_WORKFLOW } from '../core/names';
import type { FollowUpRequest } from '../core/request';
import { jsonBytes, markdownCode } from '../core/text';
import { grpcError, hasGrpcStatus } from '../temporal/grpc-status';
import { msNumberToTs, withConflictToken } from '../temporal/sdk-internals';
import { type BatchItems, checkBatch, checkRunOptions, type RunOptions } from './batch/check';
import type { CallOptions, Calls } from './call';
import { ConflictError, invalid, notFound, refuse, scheduleConflict } from './errors';
import { checkName } from './options';

/** When a schedule fires, and how each of its batches runs. */
export type NewScheduleOptions = Pick<ScheduleOptions, 'spec' | 'policies' | 'state'> & RunOptions;

/** What is left out stays, also what somebody else has set. `spec` and `items`, with their options, are replaced as a whole. */
export interface ScheduleChange extends Partial<NewScheduleOptions> {
  readonly items?: BatchItems | undefined;
}

export interface Triggered {
  /**
   * `skipped`: a batch of the schedule runs, and the overlap policy does not start another. `waiting`: the batch was not
   * seen in some 5 s; it may wait for one that runs.
   */
  readonly outcome: 'started' | 'skipped' | 'waiting';
  /** The batch that this trigger has started, and no other. */
  readonly batchId: string | null;
}

/** Temporal's own handle, with two methods that know batches. Both throw NotFoundError where the id is of no such schedule. */
export interface ScheduleHandle extends Omit<TemporalScheduleHandle, 'trigger' | 'update'> {
  /**
   * Fires now, even if the schedule is paused. By `overlap`, or else by the schedule's own policy.
   *
   * @throws ConflictError when somebody has changed the workflow id of its batches
   */
  trigger(overlap?: ScheduleOverlapPolicy, options?: CallOptions): Promise<Triggered>;
  /** What others change at the same moment stays. A batch that runs continues as it was. @throws InvalidRequestError */
  update(change: ScheduleChange, options?: CallOptions): Promise<void>;
}

/** Temporal's schedules, whose action starts a batch. Reached as `FollowUpClient.schedules`. */
export class ScheduleClient {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /**
   * Creates a schedule. Each firing is a batch, named after the schedule and its time: `nightly-2026-11-21T03:00:00Z`.
   *
   * @param scheduleId at most 79 characters, and no slash
   * @param requests at most 1 MiB as JSON, kept in the schedule. They have no `requestId`, because each firing sends anew.
   * @param options `policies.catchupWindow` is `10m` unless given
   * @throws InvalidRequestError with every problem, also for what the server refuses
   * @throws ConflictError when a schedule has this id
   */
  async create(
    scheduleId: string,
    requests: BatchItems,
    { signal, timeout, ...options }: NewScheduleOptions & CallOptions,
  ): Promise<ScheduleHandle> {
    const noSpec = { field: 'spec', text: 'is missing; it says when the schedule fires' };
    checkRunOptions(options, ['spec', 'policies', 'state'], isRecord(options.spec) ? [] : [noSpec]);
    const { spec, policies = {}, state = {}, ...settings } = options;
    const items = await checkSchedule(scheduleId, requests);
    const action = {
      type: 'startWorkflow' as const,
      workflowType: BATCH_WORKFLOW,
      // Temporal appends the time of each firing.
      workflowId: batchWorkflowId(scheduleId),
      // The SDK's type lacks it; it is sent nevertheless.
      priority: BATCH_PRIORITY,
      ...this.#startOf(scheduleId, items),
      args: [{ items, ...settings }] as [BatchInput],
    };
    // A restart loses no firing, and an outage's are not sent in the middle of the day.
    const withDefault = { catchupWindow: '10m', ...given(policies) };
    const schedule = { scheduleId, action, spec, state, policies: withDefault };
    await this.#calls.run({ signal, timeout }, (client) =>
      client.schedule.create(schedule).catch(refusedInWords),
    );
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
        calls.run(options, (client) => this.#update(client, scheduleId, change)),
    });
    // A log that shows the handle is to show nothing of the connection, which holds the key.
    return Object.defineProperty(handle, 'client', { enumerable: false });
  }

  async #update(client: Client, scheduleId: string, change: ScheduleChange): Promise<void> {
    const { items: requests, spec, policies = {}, state = {}, ...settings } = change;
    await ofBatches(client, scheduleId);
    checkRunOptions(settings);
    const items = requests && (await checkSchedule(scheduleId, requests));
    const changed = ({ action, ...now }: ScheduleDescription) => {
      const [input, ...further] = (action.args ?? []) as BatchInput[];
      return {
        spec: spec ?? now.spec,
        policies: { ...now.policies, ...given(policies) },
        state: { ...now.state, ...given(state) },
        action: {
          ...action,
          ...(items && this.#startOf(scheduleId, items)),
          // The typed ones are the same, and the SDK takes one of the two.
          searchAttributes: {},
          args: [{ ...input, ...given({ items, ...settings }) }, ...further] as [BatchInput],
        },
      };
    };
    await withConflictToken(client, scheduleId, (schedule) => schedule.update(changed)).catch(refusedInWords);
  }

  #startOf(scheduleId: string, items: readonly FollowUpRequest[]) {
    const staticSummary = `${batchSummary(items.length)} by the schedule ${markdownCode(scheduleId)}`;
    return { taskQueue: this.#calls.taskQueue, staticSummary };
  }
}

const NO_NAMES = 'must not be given in a schedule: from the second firing on, nothing would be sent';

/** @throws InvalidRequestError */
export async function checkSchedule(scheduleId: string, requests: BatchItems<unknown>) {
  // Of any firing.
  const batchId = `${scheduleId}-2006-01-02T15:04:05Z`;
  const text = batchIdProblem(batchId);
  if (text !== undefined) throw invalid('scheduleId', text);
  const { items } = await checkBatch(requests, { batchId });
  const checked = items.map(({ request }) => request);
  const problems: Problem[] = [];
  for (const [index, { key }] of items.entries())
    if (key === null) problems.push({ item: index + 1, field: 'requestId', text: NO_NAMES });
  const mib = jsonBytes(checked) / MAX_INPUT_BYTES;
  const tooMuch = `${mib.toFixed(1)} MiB as JSON, and a schedule holds 1 MiB at most; let cron run "batch run" instead`;
  if (mib > 1) problems.push({ field: 'items', text: tooMuch });
  refuse(problems);
  return checked;
}

/** Without decoding what may be another service's. @throws NotFoundError */
async function ofBatches({ workflowService, options: { namespace } }: Client, scheduleId: string) {
  const request = { namespace, scheduleId };
  const { schedule, info } = await workflowService.describeSchedule(request).catch((error: unknown) => {
    throw hasGrpcStatus(error, 'NOT_FOUND') ? notFound('schedule', scheduleId, namespace) : error;
  });
  const { workflowType, workflowId } = schedule?.action?.startWorkflow ?? {};
  const type = workflowType?.name ?? 'nothing';
  const why = `the one of this id does not start follow-up batches; it starts ${JSON.stringify(type)}`;
  if (type !== BATCH_WORKFLOW) throw notFound('schedule', scheduleId, namespace, why);
  const { recentActions, overlapSkipped } = info ?? {};
  const policy = schedule?.policies?.overlapPolicy;
  return { workflowId, policy, recent: recentActions ?? [], skipped: Number(overlapSkipped ?? 0) };
}

/** Counted, so that a busy server gets more time. */
const LOOKS = 50;
const BETWEEN_LOOKS_MS = 100;

/**
 * The server silently drops a second firing in one second, by which it names a batch. So the trigger is given a time of its
 * own, to the nanosecond, by which its firing is recognized (measured, server 1.32.0).
 */
async function trigger(
  client: Client,
  scheduleId: string,
  overlap: ScheduleOverlapPolicy | undefined,
  signal: AbortSignal,
): Promise<Triggered> {
  const { namespace, identity } = client.options;
  const before = await ofBatches(client, scheduleId);
  const expected = batchWorkflowId(scheduleId);
  if (before.workflowId !== expected) {
    const message = `The batches of the schedule ${JSON.stringify(scheduleId)} have the workflow id ${JSON.stringify(before.workflowId)}, which no batch id names. Nothing was started. Set it back to ${JSON.stringify(expected)}.`;
    throw new ConflictError('CONFLICT', message);
  }
  const now = Date.now();
  const nanos = (now % 1_000) * 1_000_000 + randomInt(1_000_000);
  const scheduledTime = { ...msNumberToTs(now), nanos };
  const overlapPolicy = encodeScheduleOverlapPolicy(overlap) ?? null;
  const patch = { triggerImmediately: { scheduledTime, overlapPolicy } };
  const requestId = `${now}-${nanos}`;
  await client.workflowService.patchSchedule({ namespace, scheduleId, identity, requestId, patch });
  // With a buffering policy, what the server counts as skipped may be another firing.
  const policy = overlapPolicy ?? before.policy;
  const maySkip = !policy || policy === encodeScheduleOverlapPolicy('SKIP');
  const own = `${expected}-${new Date(now).toISOString().slice(0, 19)}Z`;
  for (let looks = 0; looks < LOOKS; looks += 1) {
    const { recent, skipped } = await ofBatches(client, scheduleId);
    const named = recent.filter(({ startWorkflowResult }) => startWorkflowResult?.workflowId === own);
    if (named.some(({ scheduleTime }) => scheduleTime?.nanos === nanos))
      return { outcome: 'started', batchId: batchIdOf(own) };
    if (maySkip && skipped > before.skipped) return { outcome: 'skipped', batchId: null };
    await sleep(BETWEEN_LOOKS_MS, undefined, { signal });
    if (named.length === 0) continue;
    // Another firing has this second, so that this one never starts.
    await sleep(1_000 - (Date.now() % 1_000), undefined, { signal });
    return trigger(client, scheduleId, overlap, signal);
  }
  return { outcome: 'waiting', batchId: null };
}

/** The SDK takes a field that is undefined for one that is set. */
function given<Fields extends object>(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields;
}

function refusedInWords(error: unknown): never {
  if (error instanceof ScheduleAlreadyRunning) throw scheduleConflict(error.scheduleId);
  const refused = grpcError(error);
  // The SDK makes a TypeError of "Invalid schedule spec: …".
  if (error instanceof TypeError) throw invalid('spec', `is refused: ${error.message}`);
  if (refused?.status !== 'INVALID_ARGUMENT') throw error;
  throw invalid('schedule', `the server refuses it: ${refused.words}`);
}

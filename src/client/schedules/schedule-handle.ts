import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Backfill,
  type Client,
  encodeScheduleOverlapPolicy,
  type ScheduleDescription,
  ScheduleNotFoundError as TemporalScheduleNotFound,
  type ScheduleOptions,
  type ScheduleOverlapPolicy,
} from '@temporalio/client';
import { ValueError } from '@temporalio/common';
import { BATCH_WORKFLOW } from '../../core/batch-workflows';
import { grpcError } from '../../temporal/grpc-status';
import { msNumberToTs } from '../../temporal/sdk-internals';
import type { BatchItems } from '../batch/batch-client';
import { changedAction, checkFiringOptions, checkItems, type FiringOptions } from './action';
import { InvalidRequestError, scheduleNotFound } from '../errors';

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

/** Some fields of an object; null removes one. */
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

/** The server carries a trigger out within milliseconds. */
const SEEN_WITHIN_MS = 5_000;
const LOOK_EVERY_MS = 100;

/** The moment at which a trigger is due; the nanoseconds tell it from every other. */
type Due = ReturnType<typeof msNumberToTs>;

/**
 * A schedule of follow-ups: Temporal's `ScheduleHandle`, with `trigger` and `update` of its own. Every method throws
 * NotFoundError if there is no schedule of this id, or if it starts something else.
 */
export class ScheduleHandle {
  constructor(
    private readonly client: Client,
    readonly scheduleId: string,
  ) {}

  /** As Temporal describes it. */
  async describe(): Promise<ScheduleDescription> {
    const { namespace } = this.client.options;
    const refuseOther = (workflowType: string | undefined): void => {
      if (workflowType !== BATCH_WORKFLOW) throw scheduleNotFound(this.scheduleId, namespace, workflowType);
    };
    try {
      const schedule = await this.temporal.describe();
      refuseOther(schedule.action.workflowType);
      return schedule;
    } catch (error) {
      if (error instanceof TemporalScheduleNotFound) throw scheduleNotFound(this.scheduleId, namespace);
      // What can't be decoded is most likely another service's.
      if (error instanceof ValueError) {
        const { scheduleId } = this;
        const { schedule } = await this.client.workflowService.describeSchedule({ namespace, scheduleId });
        refuseOther(schedule?.action?.startWorkflow?.workflowType?.name ?? undefined);
      }
      throw error;
    }
  }

  /**
   * Fires now, even if the schedule is paused, and waits up to 5 s to see what becomes of it.
   *
   * @param overlap @default the schedule's own policy
   * @param options `signal` ends the wait; the schedule fires nevertheless
   */
  async trigger(
    overlap?: ScheduleOverlapPolicy,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<Triggered> {
    for (;;) {
      signal?.throwIfAborted();
      const triggered = await this.fire(overlap, signal);
      if (triggered !== 'taken') return triggered;
      await sleep(1_000 - (Date.now() % 1_000), undefined, signal === undefined ? {} : { signal });
    }
  }

  /** It fires no more until it is unpaused, unless triggered; a batch that runs continues. */
  async pause(note?: string): Promise<void> {
    await this.describe();
    await this.temporal.pause(note ?? 'paused by FollowUpClient');
  }

  async unpause(note?: string): Promise<void> {
    await this.describe();
    await this.temporal.unpause(note ?? 'unpaused by FollowUpClient');
  }

  /**
   * Fires for the times of a range as if it passed now. The server starts no batch whose id exists, so a time whose batch
   * the namespace still has is left out.
   */
  async backfill(options: Backfill | Backfill[]): Promise<void> {
    await this.describe();
    await this.temporal.backfill(options);
  }

  /**
   * Changes what is given. A batch that runs continues as it was.
   *
   * @throws InvalidRequestError with every problem, also for what the server refuses
   */
  async update({ items, spec, policies, state, ...options }: ScheduleChange): Promise<void> {
    checkFiringOptions(options);
    await this.describe();
    const checked = items === undefined ? undefined : await checkItems(this.scheduleId, items);
    const { calendars, cronExpressions, intervals } = spec ?? {};
    const hasTiming = (calendars ?? cronExpressions ?? intervals) !== undefined;
    try {
      await this.temporal.update((now) => ({
        spec: withChange<ScheduleOptions['spec']>(
          hasTiming ? { ...now.spec, calendars: [], intervals: [] } : now.spec,
          spec,
        ),
        policies: withChange(now.policies, policies),
        state: withChange(now.state, state),
        action: changedAction(now, { ...options, items: checked }),
      }));
    } catch (error) {
      throw inFieldWords(error);
    }
  }

  /** Removes the schedule; a batch that runs continues. */
  async delete(): Promise<void> {
    await this.describe();
    await this.temporal.delete();
  }

  private get temporal() {
    return this.client.schedule.getHandle(this.scheduleId);
  }

  /**
   * Fires once. The id of a batch holds the second in which it is due, and the server silently drops a second firing in
   * the same second. So the trigger is given a time of its own, to the nanosecond, by which its firing is recognized
   * (measured, server 1.32.0).
   *
   * @returns `taken` if another firing has this second, so that this one never starts
   */
  private async fire(
    overlap: ScheduleOverlapPolicy | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Triggered | 'taken'> {
    const before = await this.describe();
    const now = Date.now();
    const due: Due = { ...msNumberToTs(now), nanos: (now % 1_000) * 1_000_000 + randomInt(1_000_000) };
    const overlapPolicy = encodeScheduleOverlapPolicy(overlap);
    await this.client.workflowService.patchSchedule({
      namespace: this.client.options.namespace,
      scheduleId: this.scheduleId,
      identity: this.client.options.identity,
      requestId: `${now}-${due.nanos}`,
      patch: {
        triggerImmediately: { scheduledTime: due, ...(overlapPolicy === undefined ? {} : { overlapPolicy }) },
      },
    });
    const policy = overlap ?? before.policies.overlap;
    const maySkip = policy === 'SKIP' || policy === 'BUFFER_ONE';
    const giveUpAt = now + SEEN_WITHIN_MS;
    while (Date.now() < giveUpAt) {
      const { info, raw } = await this.describe();
      const sameSecond = (raw.info?.recentActions ?? []).filter(
        ({ startWorkflowResult }) => startWorkflowResult?.workflowId?.endsWith(secondOf(now)) === true,
      );
      const own = sameSecond.find(({ scheduleTime }) => scheduleTime?.nanos === due.nanos);
      if (own !== undefined)
        return { outcome: 'started', batchId: batchIdOfFiring(own.startWorkflowResult?.workflowId ?? '') };
      if (sameSecond.length > 0) return 'taken';
      if (maySkip && info.numActionsSkippedOverlap > before.info.numActionsSkippedOverlap)
        return { outcome: 'skipped', batchId: null };
      await sleep(LOOK_EVERY_MS, undefined, signal === undefined ? {} : { signal });
    }
    return { outcome: 'waiting', batchId: null };
  }
}

/** The id of the batch that a firing has started. */
export function batchIdOfFiring(workflowId: string): string {
  return workflowId.replace(/^follow-up-batch:/, '');
}

/** The end of the workflow id of a firing. */
function secondOf(ms: number): string {
  return `-${new Date(ms).toISOString().slice(0, 19)}Z`;
}

function withChange<Fields extends object>(now: Fields, change: Change<Fields> = {}): Fields {
  const given = Object.entries(change).filter(([, value]) => value !== undefined);
  const all = Object.entries({ ...now, ...Object.fromEntries(given) });
  return Object.fromEntries(all.filter(([, value]) => value !== null)) as Fields;
}

/** What the SDK or the server refuses of a schedule, as a problem of its field; any other error as it is. */
export function inFieldWords(error: unknown): unknown {
  // The SDK makes a TypeError of "Invalid schedule spec: …".
  if (error instanceof TypeError)
    return new InvalidRequestError([{ field: 'spec', text: `is refused: ${error.message}` }]);
  const refused = grpcError(error);
  if (refused?.status !== 'INVALID_ARGUMENT') return error;
  return new InvalidRequestError([{ field: 'schedule', text: `the server refuses it: ${refused.words}` }]);
}

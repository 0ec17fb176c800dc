/** Interfaces of the client's classes. Code that depends on the interfaces accepts the in-memory client, or a mock, in tests. */
import type { BatchClient, BatchHandle } from './batch/batch-client';
import type { BatchStartResult } from './batch/start';
import type { FollowUpClient } from './follow-up-client';
import type { FollowUpHandle } from './follow-up-handle';
import type { ScheduleClient } from './schedules';
import type { FollowUpStartResult } from './start';

/** The public members of a class. In TypeScript, no other class can implement a type with private members. */
type Public<Class> = Pick<Class, keyof Class>;

export interface FollowUpHandleLike extends Omit<Public<FollowUpHandle>, 'retry'> {
  retry(
    ...args: Parameters<FollowUpHandle['retry']>
  ): Promise<FollowUpHandleLike & { readonly runId: string }>;
}

export type ScheduleClientLike = Public<ScheduleClient>;

export interface FollowUpClientLike extends Omit<
  Public<FollowUpClient>,
  'client' | 'start' | 'getHandle' | 'batches' | 'schedules'
> {
  start(...args: Parameters<FollowUpClient['start']>): Promise<FollowUpHandleLike & FollowUpStartResult>;
  getHandle(...args: Parameters<FollowUpClient['getHandle']>): FollowUpHandleLike;
  readonly batches: BatchClientLike;
  readonly schedules: ScheduleClientLike;
}

export interface BatchClientLike extends Omit<Public<BatchClient>, 'start' | 'getHandle'> {
  start(...args: Parameters<BatchClient['start']>): Promise<BatchHandleLike & BatchStartResult>;
  getHandle(batchId: string): BatchHandleLike;
}

export interface BatchHandleLike extends Omit<Public<BatchHandle>, 'retry'> {
  retry(...args: Parameters<BatchHandle['retry']>): Promise<(BatchHandleLike & BatchStartResult) | null>;
}

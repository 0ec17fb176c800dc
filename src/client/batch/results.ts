import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { type ItemEnd } from '../../core/batch/progress';
import { begunBy, wasBegun } from '../../core/batch/state';
import { type End, endWithoutReceipt, mayTryAgain } from '../../core/end';
import type { NamedItem } from '../../temporal/batch-items';
import { eachConcurrently } from '../../temporal/each-concurrently';
import { findEnd } from '../../temporal/follow-up-end';
import { isTransient } from '../../temporal/grpc-status';
import { endsOf, keepLatest, lastingEnd, type ListedEnd, openOf } from '../../temporal/lists';
import { type BatchReport, findBatch, inputOf, reportOf } from './describe';

/** Questions to the server at once. */
const ASKED_AT_ONCE = 16;

/** The visibility store is a moment behind: what closed so shortly before the last one that was listed may come later. */
const LAG_MS = 60_000;

/**
 * How the items of a batch have ended, by the server's list; it needs no worker. An item that the list does not know is asked
 * for by its id: somebody else has started it, it is gone, or the list lags.
 */
export class BatchEnds {
  private readonly told = new Set<string>();
  private readonly listed = new Map<string, ListedEnd>();
  private listedTo: Date | undefined;

  constructor(private readonly client: Client) {}

  /** What has ended since the last question, in the order of the ends. */
  async news(batch: BatchReport): Promise<ItemEnd[]> {
    const { batchId, memo, endedAt } = batch;
    const { all, position } = await inputOf(this.client, batch);
    await this.list(batchId);
    const open = await openOf(this.client, batchId);
    const begun = begunBy(position);
    const startedAt = Date.parse(batch.startedAt);
    const leftAt = endedAt ?? new Date().toISOString();
    const ends: ItemEnd[] = [];
    const tell = ({ workflowId }: NamedItem, end: End, begunAt: number, closedAt: string) => {
      // While a retry runs, an item that it will try again has no end yet.
      if (endedAt === null && begunAt < startedAt && mayTryAgain(end, memo?.again ?? null)) return;
      const [, projectId = '', jobId = '', requestId = ''] = workflowId.split(':').map(decodeURIComponent);
      ends.push({ workflowId, projectId, jobId, requestId, ...end, settledAt: closedAt });
    };
    const unknown: (readonly [NamedItem, boolean])[] = [];
    let number = -1;
    for await (const item of all.all()) {
      number += 1;
      if (this.told.has(item.workflowId) || open.has(item.workflowId)) continue;
      const known = this.listed.get(item.workflowId);
      const end = lastingEnd(known);
      const was = wasBegun(begun, number);
      if (known && end) tell(item, end, known.startedAt.getTime(), known.closedAt.toISOString());
      // While the batch runs, nothing is asked for that has perhaps not begun.
      else if (known !== undefined || was || (endedAt !== null && number < position.bound))
        unknown.push([item, was]);
    }
    const foreignBefore = position.begun === null ? startedAt : 0;
    await eachConcurrently(unknown, ASKED_AT_ONCE, async ([item, was]) => {
      const {
        end,
        startedAt: begunAt = 0,
        closedAt,
      } = await findEnd(this.client, { ...item, foreignBefore });
      if (end?.outcome === 'gone' && !was) return;
      if (end !== null) tell(item, end, begunAt, closedAt ?? leftAt);
      else if (endedAt !== null && memo?.ending === 'cancel-running')
        tell(item, endWithoutReceipt('left-running'), 0, leftAt);
    });
    for (const end of ends) this.told.add(end.workflowId);
    return ends.sort((one, other) => Date.parse(one.settledAt) - Date.parse(other.settledAt));
  }

  private async list(batchId: string): Promise<void> {
    const since = this.listedTo && new Date(this.listedTo.getTime() - LAG_MS);
    for await (const end of endsOf(this.client, batchId, since)) {
      keepLatest(this.listed, end);
      if (this.listedTo === undefined || end.closedAt > this.listedTo) this.listedTo = end.closedAt;
    }
  }
}

/** One look at a batch that is being watched. */
export interface BatchLook {
  /** Where it stands; null if the server did not answer. */
  readonly report: BatchReport | null;
  /** The items that have settled since the look before. */
  readonly ends: readonly ItemEnd[];
}

const REFRESH_MS = 2_000;

/** `BatchHandle.watch` says what it does. */
export async function* looksAt(
  client: Client,
  batchId: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<BatchLook, void> {
  const { workflowId } = await findBatch(client, batchId);
  const reader = new BatchEnds(client);
  let settled = -1;
  for (;;) {
    let isOver = false;
    try {
      const report = await reportOf(client, workflowId);
      isOver = report.state !== 'running';
      const now = report.progress?.settled ?? settled;
      const hasNews = isOver || now !== settled;
      settled = now;
      yield { report, ends: hasNews ? await reader.news(report) : [] };
    } catch (error) {
      if (!isTransient(error)) throw error;
      yield { report: null, ends: [] };
    }
    if (isOver) return;
    await sleep(REFRESH_MS, undefined, { signal });
  }
}

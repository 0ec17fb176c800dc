import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import {
  batchStart,
  batchSummary,
  CONCURRENCY,
  cutChunks,
  inStartOrder,
  MAX_CHUNKS,
  MAX_INPUT_BYTES,
} from '../../core/batch/items';
import { type BatchInput, type Begun, begunBy, CHUNK_WORKFLOW, type Lane } from '../../core/batch/state';
import { SEND_PERMISSION_MS } from '../../core/activities';
import { mayTryAgain, type TryAgain } from '../../core/end';
import { batchWorkflowId, chunkWorkflowId } from '../../core/ids';
import { BATCH_WORKFLOW } from '../../core/names';
import { jsonBytes } from '../../core/text';
import { eachConcurrently } from '../../temporal/each-concurrently';
import { describeWorkflow, type RunState, stateOf } from '../../temporal/existing-run';
import { batchConflict, invalid, wrongState } from '../errors';
import { type CheckedBatch, checkRunOptions, type RunOptions } from './check';
import { BatchEnds, type BatchReport, findBatch, inputOf, lookForBatch } from './describe';

export interface StartOfBatch {
  readonly batchId: string;
  readonly workflowId: string;
  /** False when this call started the batch; else whether the existing one is running or has ended. */
  readonly attached: false | 'running' | 'ended';
  /** How the batch had ended that this call continues; null if it continues none. */
  readonly resumedAfter: RunState | null;
  readonly items: number;
}

export interface RetryOptions extends RunOptions {
  /** Also the items of unknown delivery: messages that did arrive are sent twice. @default false */
  readonly includeUnknown?: boolean | undefined;
}

interface BatchStart {
  readonly client: Client;
  readonly taskQueue: string;
  readonly options: RetryOptions;
  readonly signal: AbortSignal;
  /** Bytes of one part, and of what needs none. @default what the server takes */
  readonly partBytes?: number | undefined;
}

/** The items of a batch; `read` takes the number of a chunk. */
type Source = Omit<Awaited<ReturnType<typeof inputOf>>, 'position' | 'all'>;

/** @throws InvalidRequestError when they need too many chunks */
export function startBatch(start: BatchStart, { batchId, items, digest }: CheckedBatch) {
  const { partBytes } = start;
  const count = items.length;
  const ordered = inStartOrder(items);
  const isSmall = jsonBytes(items) <= (partBytes ?? MAX_INPUT_BYTES);
  const firsts = isSmall ? [] : cutChunks(ordered, partBytes);
  if (firsts.length > MAX_CHUNKS) {
    const text = `the messages are so large that the batch has ${firsts.length} parts; at most ${MAX_CHUNKS} are possible, so divide it`;
    throw invalid('items', text);
  }
  const own = isSmall ? items.map(({ request }) => request) : undefined;
  const chunks = isSmall ? undefined : { items: count, firsts };
  const read = (chunk: number) => Promise.resolve(ordered.slice(firsts[chunk], firsts[chunk + 1]));
  return runBatch(start, batchId, { items: own, chunks, digest, count, read }, null);
}

export async function retryBatch(start: BatchStart, batchId: string): Promise<StartOfBatch | null> {
  const { client, options } = start;
  checkRunOptions(options, ['includeUnknown']);
  const again: TryAgain = options.includeUnknown === true ? 'unsent-or-unknown' : 'unsent';
  const before = await findBatch(client, batchId);
  const source = await inputOf(client, before);
  if (before.state !== 'running') {
    const ends = await new BatchEnds(client).news(before);
    if (ends.length === source.count && !ends.some((end) => mayTryAgain(end, again))) return null;
  }
  return runBatch(start, batchId, source, again);
}

/** A starter that stood still must not start by what it has read of an earlier run. */
const READ_HOLDS_MS = 10_000;

/** @param again which of the items that have ended are started again; null if a batch that is done stays done */
async function runBatch(
  start: BatchStart,
  batchId: string,
  source: Source,
  again: TryAgain | null,
): Promise<StartOfBatch> {
  const { client, taskQueue, options, signal } = start;
  const { items, chunks, digest, count } = source;
  const workflowId = batchWorkflowId(batchId);
  // What a start after a run needs. The first one, of few items, needs nothing.
  let ready = chunks ? null : { after: '', begun: null as Begun | null };
  for (;;) {
    const startBy = Date.now() + READ_HOLDS_MS;
    const before = await lookForBatch(client, batchId);
    if (before !== null && again === null && (await inputOf(client, before)).digest !== digest)
      throw batchConflict(batchId);
    const started = { batchId, workflowId, items: count, resumedAfter: null };
    if (before?.state === 'running') {
      if (again !== null && before.memo?.again !== again) throw wrongState(workflowId, 'running');
      return { ...started, attached: 'running' };
    }
    if (before?.state === 'completed' && again === null) return { ...started, attached: 'ended' };
    if (ready === null || (before !== null && before.runId !== ready.after)) {
      await storeChunks(start, batchId, source);
      ready = { after: before?.runId ?? '', begun: before && (await begunOf(client, before, signal)) };
      continue;
    }
    const concurrency = options.concurrency ?? before?.memo?.concurrency ?? CONCURRENCY.default;
    const tolerate = (options.tolerate === undefined ? before?.memo?.tolerate : options.tolerate) ?? null;
    signal.throwIfAborted();
    const { begun } = ready;
    const runOf = again === null ? 'ALLOW_DUPLICATE_FAILED_ONLY' : 'ALLOW_DUPLICATE';
    try {
      await client.withDeadline(startBy, () =>
        client.workflow.start(BATCH_WORKFLOW, {
          ...batchStart(batchId),
          workflowId,
          taskQueue,
          args: [
            { batchId, concurrency, tolerate, digest, begun, again, items, chunks } satisfies BatchInput,
          ],
          workflowIdConflictPolicy: 'FAIL',
          workflowIdReusePolicy: before === null ? 'REJECT_DUPLICATE' : runOf,
          staticSummary: batchSummary(count),
        }),
      );
      return { ...started, attached: false, resumedAfter: before?.state ?? null };
    } catch (error) {
      // Somebody else was faster; or this is the id of something else than a batch.
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      await findBatch(client, batchId);
    }
  }
}

/** A run that was ended early may still start a group, as long as its permission lasts. */
export const QUIET_AFTER_MS = SEND_PERMISSION_MS + 5_000;

/** What a run that has ended has begun, and those before it. What it may have begun is asked for now, before it is forgotten. */
async function begunOf(client: Client, batch: BatchReport, signal: AbortSignal): Promise<Begun> {
  const { startedAt, raw } = batch;
  const wasReset = Boolean(raw.workflowExtendedInfo?.lastResetTime);
  const { position, all, count } = await inputOf(client, batch);
  const { movingSince, lanes } = position;
  const begun = begunBy(position);
  if (!wasReset && movingSince === null && lanes.every(([, , how]) => how !== 'may')) return begun;
  await sleep(QUIET_AFTER_MS, undefined, { signal });
  // After a reset the memo is as old as its point.
  const bound = wasReset ? count : Math.max(position.bound, begun.cursor);
  const { namespace } = client.options;
  const { config } = await client.workflowService.describeNamespace({ namespace });
  const retentionMs = 1_000 * Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0);
  const since = wasReset ? startedAt : (movingSince ?? startedAt);
  // The server may have forgotten it.
  if (Date.now() - since >= retentionMs) return { cursor: bound, lanes: [] };
  const look = async (item: number) => {
    const found = await describeWorkflow(client, (await all.named(item)).workflowId);
    return found && stateOf(found.status.name);
  };
  return askedFor(begun, bound, all.endOfLane, look);
}

/** In the memo and in each heartbeat. There are more only where many items were deleted. */
const MAX_LANES = 2 * CONCURRENCY.maximum;

/**
 * Items of a lane are begun in their order: nothing behind one that does not exist was begun. Lanes that have ended are left
 * out, and those behind the last one that was begun; else they would be as many as the items.
 *
 * @param look null where there is no such item
 */
export async function askedFor(
  begun: Begun,
  bound: number,
  endOfLane: (item: number) => Promise<number>,
  look: (item: number) => Promise<RunState | null>,
): Promise<Begun> {
  const asked = [...begun.lanes];
  let { cursor } = begun;
  for (let next = cursor; next < bound; next = asked.at(-1)?.[1] ?? bound)
    asked.push([next, await endOfLane(next), 'free']);
  const lanes: Lane[] = [];
  await eachConcurrently(asked, async ([first, end, state]) => {
    let next = first;
    let last: RunState | null = null;
    for (let found; next < end && (found = await look(next)) !== null; next += 1) last = found;
    if (next > first) cursor = Math.max(cursor, end);
    // One that is known to have been begun and does not exist is gone.
    if (next === first) lanes.push([first, end, state === 'open' ? 'open' : 'free']);
    else if (next < end || last === 'running') lanes.push([next - 1, end, 'open']);
  });
  const kept = lanes.filter(([, end]) => end <= cursor).sort(([one], [other]) => one - other);
  // What is behind the last lane is started by its id, as in a first run.
  return { cursor: kept[MAX_LANES]?.[0] ?? cursor, lanes: kept.slice(0, MAX_LANES) };
}

/** Longer than a batch lasts. */
const CHUNK_DELAY = '365 days';

/** Stores the items before the batch starts: a caller that dies meanwhile has started nothing, and may repeat it. */
async function storeChunks(
  { client, taskQueue, signal }: BatchStart,
  batchId: string,
  { chunks, digest, read }: Source,
): Promise<void> {
  const { firsts = [] } = chunks ?? {};
  await eachConcurrently(firsts.keys(), async (chunk) => {
    const items = await read(chunk);
    signal.throwIfAborted();
    // The SDK keeps each request as long as its signal, so each chunk gets its own.
    await client.withAbortSignal(new AbortController().signal, () =>
      client.workflow.start(CHUNK_WORKFLOW, {
        ...batchStart(batchId),
        workflowId: chunkWorkflowId(batchId, digest ?? '', chunk),
        taskQueue,
        args: [{ items }],
        startDelay: CHUNK_DELAY,
        // The same name is the same content. One that has ended would be forgotten while the batch runs.
        workflowIdConflictPolicy: 'USE_EXISTING',
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
        staticSummary: `Part ${chunk + 1} of the items of a batch`,
      }),
    );
  });
}

import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import {
  type BatchItem,
  batchStart,
  batchSummary,
  CONCURRENCY,
  cutChunks,
  inStartOrder,
  Keys,
  MAX_CHUNKS,
  MAX_INPUT_BYTES,
} from '../../core/batch/items';
import { type BatchInput, type Begun, CHUNK_WORKFLOW } from '../../core/batch/state';
import { isRecord } from '../../core/checks';
import { mayTryAgain, type TryAgain } from '../../core/end';
import { batchIdOf, batchWorkflowId, chunkWorkflowId } from '../../core/ids';
import { BATCH_WORKFLOW } from '../../core/names';
import { jsonBytes } from '../../core/text';
import { ItemsGoneError } from '../../temporal/batch-items';
import { eachConcurrently } from '../../temporal/each-concurrently';
import { readOwnInput, type RunState } from '../../temporal/existing-run';
import { batchConflict, InvalidRequestError, wrongState } from '../errors';
import { type CheckedBatch, checkRunOptions, itemsDigest, type RunOptions } from './check';
import { type BatchReport, begunOf, findBatch, inputOf, lookForBatch } from './describe';
import { BatchEnds } from './results';

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
  /**
   * Also the items of which nobody can tell whether their message arrived: those whose message did are sent twice.
   * @default false
   */
  readonly includeUnknown?: boolean | undefined;
}

interface BatchStart<Options = RunOptions> {
  readonly client: Client;
  readonly taskQueue: string;
  readonly options: Options;
  /** Ends the hand-over between two parts. */
  readonly signal: AbortSignal;
  /** Bytes of one part, and of what needs none. @default what the server takes */
  readonly partBytes?: number | undefined;
}

/** Where a batch's items come from: the batch's input, or parts that must be stored before. */
interface Source extends Pick<BatchInput, 'items' | 'chunks'> {
  readonly count: number;
  readonly digest: string | null;
  /** The items of one of the chunks. */
  readonly read: (chunk: number) => Promise<readonly BatchItem[]>;
}

/** `BatchClient.start` says what it does. */
export async function startBatch(start: BatchStart, batch: CheckedBatch): Promise<StartOfBatch> {
  const before = await lookForBatch(start.client, batch.batchId);
  if (before !== null && (await digestOfItems(start.client, before)) !== batch.digest)
    throw batchConflict(batch.batchId);
  return runBatch(start, batch.batchId, sourceOf(batch, start.partBytes), null);
}

/** `BatchHandle.retry` says what it does. */
export async function retryBatch(
  start: BatchStart<RetryOptions>,
  batch: string,
): Promise<StartOfBatch | null> {
  const { client, options } = start;
  checkRunOptions(options, ['includeUnknown']);
  const again: TryAgain = options.includeUnknown === true ? 'unsent-or-unknown' : 'unsent';
  const before = await findBatch(client, batch);
  const { items, chunks, digest, count } = await inputOf(client, before);
  const read = async (chunk: number) => {
    const stored = await readOwnInput(client, chunkWorkflowId(before.batchId, digest ?? '', chunk), '');
    if (!isRecord(stored?.input)) throw new ItemsGoneError(before.batchId);
    return stored.input.items as readonly BatchItem[];
  };
  if (before.state !== 'running') {
    const ends = await new BatchEnds(client).news(before);
    if (ends.length === count && !ends.some((end) => mayTryAgain(end, again))) return null;
  }
  const source = { ...(items ? { items } : { chunks }), digest, count, read };
  return runBatch(start, before.batchId, source as Source, again);
}

/** @throws InvalidRequestError when they need too many chunks */
function sourceOf({ items, digest }: CheckedBatch, partBytes?: number): Source {
  const count = items.length;
  const ordered = inStartOrder(items);
  const isSmall = jsonBytes(items) <= (partBytes ?? MAX_INPUT_BYTES);
  const firsts = isSmall ? [] : cutChunks(ordered, partBytes);
  if (firsts.length > MAX_CHUNKS) {
    const text = `the messages are so large that the batch has ${firsts.length} parts; at most ${MAX_CHUNKS} are possible, so divide it`;
    throw new InvalidRequestError([{ field: 'items', text }]);
  }
  const read = (chunk: number) => Promise.resolve(ordered.slice(firsts[chunk], firsts[chunk + 1]));
  const input = isSmall
    ? { items: items.map(({ request }) => request) }
    : { chunks: { items: count, firsts } };
  return { ...input, digest, count, read };
}

/** What was read of an earlier run holds for so long: a starter that stood still must not start by it. */
const READ_HOLDS_MS = 10_000;

/**
 * Starts a run of a batch, or attaches to the one that runs.
 *
 * @param again which of the items that have ended are started again; null if a batch that is done stays done
 */
async function runBatch(
  start: BatchStart,
  batch: string,
  { count, digest, read, ...input }: Source,
  again: TryAgain | null,
): Promise<StartOfBatch> {
  const { client, taskQueue, options } = start;
  const batchId = batchIdOf(batch);
  const workflowId = batchWorkflowId(batchId);
  let areStored = input.chunks === undefined;
  let known: { readonly runId?: string; readonly begun: Begun | null } = { begun: null };
  for (;;) {
    const startBy = Date.now() + READ_HOLDS_MS;
    const before = await lookForBatch(client, batch);
    const started = { batchId, workflowId, items: count, resumedAfter: null };
    if (before?.state === 'running') {
      if (again !== null && before.memo?.again !== again) throw wrongState(workflowId, 'running');
      return { ...started, attached: 'running' };
    }
    if (before?.state === 'completed' && again === null) return { ...started, attached: 'ended' };
    if (!areStored) {
      await storeChunks(start, batchId, digest ?? '', input.chunks?.firsts ?? [], read);
      areStored = true;
      continue;
    }
    if (before !== null && before.runId !== known.runId) {
      known = { runId: before.runId, begun: await begunOf(client, before, start.signal) };
      continue;
    }
    const concurrency = options.concurrency ?? before?.memo?.concurrency ?? CONCURRENCY.default;
    const tolerate = (options.tolerate === undefined ? before?.memo?.tolerate : options.tolerate) ?? null;
    const { begun } = known;
    const runOf = again === null ? 'ALLOW_DUPLICATE_FAILED_ONLY' : 'ALLOW_DUPLICATE';
    try {
      await client.withDeadline(startBy, () =>
        client.workflow.start(BATCH_WORKFLOW, {
          ...batchStart(batchId),
          workflowId,
          taskQueue,
          args: [{ batchId, concurrency, tolerate, digest, begun, again, ...input } satisfies BatchInput],
          workflowIdConflictPolicy: 'FAIL',
          workflowIdReusePolicy: before === null ? 'REJECT_DUPLICATE' : runOf,
          staticSummary: batchSummary(count),
        }),
      );
      return { ...started, attached: false, resumedAfter: before?.state ?? null };
    } catch (error) {
      // Somebody else was faster, perhaps with other items.
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      const there = await inputOf(client, await findBatch(client, workflowId));
      if (there.digest !== digest) throw batchConflict(batchId);
    }
  }
}

/** Also of a batch that another client has started, which makes no digest. */
async function digestOfItems(client: Client, batch: BatchReport): Promise<string | null> {
  const { digest, items } = await inputOf(client, batch);
  const keys = new Keys();
  return digest ?? (items ? itemsDigest(items.map((request) => keys.itemOf(request))) : null);
}

/** Chunks that are stored at once: each is one call of half a megabyte at most. */
const AT_ONCE = 8;

/** Longer than a batch lasts; a chunk whose batch never comes ends then. */
const CHUNK_DELAY = '365 days';

/** Stores the items before the batch starts: a caller that dies meanwhile has started nothing, and may repeat it. */
async function storeChunks(
  { client, taskQueue, signal }: BatchStart,
  batchId: string,
  digest: string,
  firsts: readonly number[],
  read: Source['read'],
): Promise<void> {
  await eachConcurrently(firsts.keys(), AT_ONCE, async (chunk) => {
    signal.throwIfAborted();
    const items = await read(chunk);
    // The SDK keeps each request as long as its signal, so each chunk gets its own.
    await client.withAbortSignal(new AbortController().signal, () =>
      client.workflow.start(CHUNK_WORKFLOW, {
        ...batchStart(batchId),
        workflowId: chunkWorkflowId(batchId, digest, chunk),
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

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
  requestIdOf,
} from '../../core/batch/items';
import { type BatchInput, CHUNK_WORKFLOW } from '../../core/batch/state';
import { BATCH_WORKFLOW } from '../../core/names';
import { isRecord } from '../../core/checks';
import { mayTryAgain, type TryAgain } from '../../core/end';
import { batchIdOf, batchWorkflowId, chunkWorkflowId, followUpWorkflowId } from '../../core/ids';
import { jsonBytes } from '../../core/text';
import { eachConcurrently } from '../../temporal/each-concurrently';
import { ItemsGoneError } from '../../temporal/batch-items';
import { compareRequests, readOwnInput, type RunState } from '../../temporal/existing-run';
import { batchConflict, InvalidRequestError, wrongState } from '../errors';
import { planOf } from '../start';
import { type BatchOptions, type CheckedBatch, checkRunOptions, itemsDigest } from './check';
import { type BatchDescription, begunOf, findBatch, inputOf, lookForBatch } from './describe';
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

export interface RetryOptions extends BatchOptions {
  /**
   * Also the items of which nobody can tell whether their message arrived: those whose message did are sent twice.
   * @default false
   */
  readonly includeUnknown?: boolean | undefined;
}

interface BatchStart<Options = BatchOptions> {
  readonly client: Client;
  readonly taskQueue: string;
  readonly options: Options;
  /** Ends the hand-over between two parts. */
  readonly signal: AbortSignal;
  /** Bytes of one part, and of what needs none. @default what the server takes */
  readonly partBytes?: number | undefined;
}

/** Where a batch's items come from: the batch's input, or parts that must be stored before. */
interface Source {
  readonly items: number;
  readonly digest: string | null;
  readonly input: Pick<BatchInput, 'items' | 'chunks'>;
  /** The items of one of the chunks. */
  readonly read: (chunk: number) => Promise<readonly BatchItem[]>;
}

/** `BatchClient.start` says what it does. */
export async function startBatch(start: BatchStart, batch: CheckedBatch): Promise<StartOfBatch> {
  const before = await lookForBatch(start.client, batch.batchId);
  if (before !== null) await refuseAnother(start.client, batch, before);
  return runBatch(start, batch.batchId, sourceOf(batch, start.partBytes), null);
}

/** `BatchHandle.retry` says what it does. */
export async function retryBatch(
  start: BatchStart<RetryOptions>,
  batch: string,
): Promise<StartOfBatch | null> {
  const { client, options } = start;
  checkRunOptions(options, ['includeUnknown', 'onStored']);
  const again: TryAgain = options.includeUnknown === true ? 'unsent-or-unknown' : 'unsent';
  const before = await findBatch(client, batch);
  if (before.state === 'running' && before.memo?.again !== again)
    throw wrongState(before.workflowId, 'running');
  const source = await existingSource(client, before);
  if (before.state !== 'running') {
    const ends = await new BatchEnds(client).news(before);
    if (ends.length === source.items && !ends.some((end) => mayTryAgain(end, again))) return null;
  }
  return runBatch(start, before.batchId, source, again);
}

/** @throws InvalidRequestError when they need too many chunks */
function sourceOf({ items, digest }: CheckedBatch, partBytes?: number): Source {
  const ordered = inStartOrder(items);
  if (jsonBytes(items) <= (partBytes ?? MAX_INPUT_BYTES)) {
    const input = { items: items.map(({ request }) => request) };
    return { items: items.length, digest, input, read: () => Promise.resolve([]) };
  }
  const firsts = cutChunks(ordered, partBytes);
  if (firsts.length > MAX_CHUNKS) {
    const text = `the messages are so large that the batch has ${firsts.length} parts; at most ${MAX_CHUNKS} are possible, so divide it`;
    throw new InvalidRequestError([{ field: 'items', text }]);
  }
  const input = { chunks: { items: items.length, firsts } };
  const read = (chunk: number) => Promise.resolve(ordered.slice(firsts[chunk], firsts[chunk + 1]));
  return { items: items.length, digest, input, read };
}

/** The items of a batch that exists. @throws FollowUpError `BATCH_FORGOTTEN` */
async function existingSource(client: Client, batch: BatchDescription): Promise<Source> {
  const { items, chunks, digest = null } = await inputOf(client, batch);
  const input = items === undefined ? { chunks } : { items };
  const read = async (chunk: number) => {
    const id = chunkWorkflowId(batch.batchId, digest ?? '', chunk);
    const stored = (await readOwnInput(client, id, ''))?.input;
    if (!isRecord(stored)) throw new ItemsGoneError(batch.batchId);
    return stored.items as readonly BatchItem[];
  };
  return { items: chunks?.items ?? items?.length ?? 0, digest, input: input as Source['input'], read };
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
  { items, digest, input, read }: Source,
  again: TryAgain | null,
): Promise<StartOfBatch> {
  const { client, taskQueue, options } = start;
  const batchId = batchIdOf(batch);
  const firsts = input.chunks?.firsts ?? [];
  let areStored = firsts.length === 0;
  for (;;) {
    const startBy = Date.now() + READ_HOLDS_MS;
    const before = await lookForBatch(client, batch);
    const workflowId = before?.workflowId ?? batchWorkflowId(batchId);
    const started = { batchId, workflowId, items, resumedAfter: null };
    if (before?.state === 'running') {
      if (again !== null && before.memo?.again !== again) throw wrongState(workflowId, 'running');
      return { ...started, attached: 'running' };
    }
    if (before?.state === 'completed' && again === null) return { ...started, attached: 'ended' };
    if (!areStored) {
      await storeChunks(start, batchId, digest ?? '', firsts, read);
      areStored = true;
      continue;
    }
    const begun = before && (await begunOf(client, before));
    const settings = before?.memo ?? null;
    const concurrency = options.concurrency ?? settings?.concurrency ?? CONCURRENCY.default;
    const tolerate = (options.tolerate === undefined ? settings?.tolerate : options.tolerate) ?? null;
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
          staticSummary: batchSummary(items),
        }),
      );
      return { ...started, attached: false, resumedAfter: before?.state ?? null };
    } catch (error) {
      // Somebody else was faster, perhaps with other items.
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      const there = await inputOf(client, await findBatch(client, workflowId));
      if (there.digest !== digest) throw batchConflict(batchId, []);
    }
  }
}

/** The digest of another batch's items, or of one that somebody else has started meanwhile. @throws ConflictError */
async function refuseAnother(
  client: Client,
  { batchId, digest, items }: CheckedBatch,
  there: BatchDescription,
): Promise<void> {
  const input = await inputOf(client, there);
  const keys = new Keys();
  const theirs = input.items?.map((request) => keys.itemOf(request));
  const known = input.digest ?? (theirs && itemsDigest(theirs));
  if (known === digest) return;
  throw batchConflict(batchId, differentOptions(batchId, items, theirs ?? []));
}

/** The options, in words, in which the first item that both have differs; none where each has the same. */
function differentOptions(batchId: string, items: readonly BatchItem[], there: readonly BatchItem[]) {
  const named = (item: BatchItem) => ({ ...item.request, requestId: requestIdOf(batchId, item) });
  const idOf = ({ projectId, jobId, requestId }: ReturnType<typeof named>) =>
    followUpWorkflowId(projectId, jobId, requestId);
  const theirs = new Map(there.map(named).map((request) => [idOf(request), request]));
  for (const request of items.map(named)) {
    const compared = compareRequests(planOf(request), theirs.get(idOf(request)));
    if (compared?.promptCompared && compared.differences.length > 0) return compared.differences;
  }
  return [];
}

/** Chunks that are stored at once: each is one call of half a megabyte at most. */
const AT_ONCE = 8;

/** Longer than a batch lasts; a chunk whose batch never comes ends then. */
const CHUNK_DELAY = '365 days';

/** Stores the items before the batch starts: a caller that dies meanwhile has started nothing, and may repeat it. */
async function storeChunks(
  { client, taskQueue, options, signal }: BatchStart,
  batchId: string,
  digest: string,
  firsts: readonly number[],
  read: Source['read'],
): Promise<void> {
  let stored = 0;
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
    stored += 1;
    options.onStored?.(stored, firsts.length);
  });
}

import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import {
  batchStartOptions,
  batchTitle,
  CONCURRENCY,
  cutChunks,
  sortByStartOrder,
  MAX_CHUNKS,
  MAX_INPUT_BYTES,
} from '../../batch/items';
import { type BatchInput, CHUNK_WORKFLOW } from '../../batch/memo';
import type { StartedItems } from '../../batch/started-items';
import { shouldRetry, type RetryScope } from '../../contract/outcome';
import { batchWorkflowId, chunkWorkflowId } from '../../contract/ids';
import { BATCH_WORKFLOW } from '../../contract/names';
import { jsonByteLength } from '../../contract/text';
import { eachConcurrently } from '../../temporal/each-concurrently';
import type { RunState } from '../../temporal/workflow-executions';
import { batchConflictError, invalidFieldError, wrongStateError } from '../errors';
import { MAX_DESCRIPTION_AGE_MS } from '../named-run';
import { booleanProblem, checkOptions, type OptionChecks } from '../options';
import { type CheckedBatch, RUN_CHECKS, type RunOptions } from './check';
import {
  BatchResultReader,
  type BatchDescription,
  findBatch,
  readBatchInput,
  describeBatch,
} from './describe';
import { findStartedItems } from './earlier-runs';

export interface BatchStartResult {
  readonly batchId: string;
  readonly workflowId: string;
  /**
   * False if this call started a run: the first one, a resumed one or a retry. Otherwise, whether the existing batch is running
   * or has ended.
   */
  readonly attached: false | 'running' | 'ended';
  /** The state in which the previous run ended, if this call resumed or retried the batch; otherwise null. */
  readonly resumedAfter: RunState | null;
  /** The number of items. */
  readonly items: number;
}

/** The options of `BatchHandle.retry`. */
export interface RetryOptions extends RunOptions {
  /**
   * Also retries items of unknown delivery, and items without a readable receipt. A message that did arrive is then sent twice.
   * @default false
   */
  readonly includeUnknown?: boolean | undefined;
}

const RETRY_CHECKS: OptionChecks<RetryOptions> = { ...RUN_CHECKS, includeUnknown: booleanProblem };

interface BatchStartContext {
  readonly client: Client;
  readonly taskQueue: string;
  readonly options: RetryOptions;
  readonly signal: AbortSignal;
  /** The maximum size in bytes of a chunk. Items of at most this size together are stored without chunks. @default a size that the Temporal server accepts */
  readonly partBytes?: number | undefined;
}

/** The items of a batch. `read` takes the number of a chunk and returns its items. */
type Source = Omit<Awaited<ReturnType<typeof readBatchInput>>, 'board' | 'itemReader'>;

/** Starts or continues a batch. @throws as `BatchClient.start` does, and InvalidRequestError if the items need too many chunks */
export function startBatch(start: BatchStartContext, { batchId, items, digest }: CheckedBatch) {
  const { partBytes } = start;
  const count = items.length;
  const ordered = sortByStartOrder(items);
  const isSmall = jsonByteLength(items) <= (partBytes ?? MAX_INPUT_BYTES);
  const firsts = isSmall ? [] : cutChunks(ordered, partBytes);
  if (firsts.length > MAX_CHUNKS) {
    const text = `need ${firsts.length} chunks, and a batch has at most ${MAX_CHUNKS}; split them into several batches`;
    throw invalidFieldError('items', text);
  }
  const inlineItems = isSmall ? items.map(({ request }) => request) : undefined;
  const chunks = isSmall ? undefined : { items: count, firsts };
  const read = (chunk: number) => Promise.resolve(ordered.slice(firsts[chunk], firsts[chunk + 1]));
  return attachOrStartBatch(start, batchId, { items: inlineItems, chunks, digest, count, read }, null);
}

/** Starts or attaches to a retry of a batch; returns null if no item can be retried. @throws as `BatchHandle.retry` does */
export async function retryBatch(
  start: BatchStartContext,
  batchId: string,
): Promise<BatchStartResult | null> {
  const { client, options } = start;
  checkOptions(options, RETRY_CHECKS);
  const retryScope: RetryScope = options.includeUnknown === true ? 'unsent-or-unknown' : 'unsent';
  const before = await findBatch(client, batchId);
  const source = await readBatchInput(client, before);
  if (before.state !== 'running') {
    const results = await new BatchResultReader(client).readNew(before);
    if (results.length === source.count && !results.some((result) => shouldRetry(result, retryScope)))
      return null;
  }
  return attachOrStartBatch(start, batchId, source, retryScope);
}

/** A request to start or to retry a batch. */
export interface BatchRequest {
  readonly digest: string | null;
  /** The items that a retry starts again; null for a start. */
  readonly retryScope: RetryScope | null;
}

/** The latest named run of a batch, with the request that started the run. */
export interface ExistingBatch extends BatchRequest {
  readonly state: RunState;
}

/**
 * The reaction to a request:
 *
 * - `conflict`: The existing batch has other items, other request options or another order.
 * - `attach`: The batch is running. A start with the same items attaches to any run, and a retry only to a retry with the same scope.
 * - `still-running`: Another run of the batch is in progress and must end before a retry can start.
 * - `done`: The batch has completed, so nothing is started.
 * - `resume`: Another run of the existing batch is started.
 * - `start`: No batch with this ID exists, so the batch is started.
 */
export type BatchStartDecision = 'conflict' | 'attach' | 'still-running' | 'done' | 'resume' | 'start';

/** Decides the reaction to a request that starts or retries a batch. */
export function decideBatchStart(
  existing: ExistingBatch | null,
  { digest, retryScope }: BatchRequest,
): BatchStartDecision {
  if (existing === null) return 'start';
  if (retryScope === null && existing.digest !== digest) return 'conflict';
  if (existing.state === 'running')
    return retryScope === null || existing.retryScope === retryScope ? 'attach' : 'still-running';
  return existing.state === 'completed' && retryScope === null ? 'done' : 'resume';
}

/**
 * Attaches to the batch, or starts a run. Before a run starts, the function stores its chunks and finds the items that earlier
 * runs started.
 */
async function attachOrStartBatch(
  start: BatchStartContext,
  batchId: string,
  source: Source,
  retryScope: RetryScope | null,
): Promise<BatchStartResult> {
  const { client, signal } = start;
  const { chunks, digest, count } = source;
  const workflowId = batchWorkflowId(batchId);
  // The first run of a batch without chunks needs no preparation.
  let prepared = chunks ? null : { previousRunId: '', startedEarlier: null as StartedItems | null };
  for (;;) {
    const startBy = Date.now() + MAX_DESCRIPTION_AGE_MS;
    const previousRun = await describeBatch(client, batchId);
    const digestBefore =
      previousRun && retryScope === null ? (await readBatchInput(client, previousRun)).digest : digest;
    const existing = previousRun && {
      ...previousRun,
      digest: digestBefore,
      retryScope: previousRun.memo?.retryScope ?? null,
    };
    const decision = decideBatchStart(existing, { digest, retryScope });
    const started = { batchId, workflowId, items: count, resumedAfter: null };
    if (decision === 'conflict') throw batchConflictError(batchId);
    if (decision === 'still-running') throw wrongStateError(workflowId, 'running');
    if (decision === 'attach') return { ...started, attached: 'running' };
    if (decision === 'done') return { ...started, attached: 'ended' };
    if (prepared === null || (previousRun !== null && previousRun.runId !== prepared.previousRunId)) {
      await storeChunks(start, batchId, source);
      const startedEarlier = previousRun && (await findStartedItems(client, previousRun, signal));
      prepared = { previousRunId: previousRun?.runId ?? '', startedEarlier };
    } else if (await startRun(start, batchId, source, { previousRun, startBy, retryScope, ...prepared }))
      return { ...started, attached: false, resumedAfter: previousRun?.state ?? null };
    // Another client started a run, or a workflow that is not a batch has this ID. `findBatch` throws in the second case.
    else await findBatch(client, batchId);
  }
}

interface NextRun extends Pick<BatchRequest, 'retryScope'> {
  readonly previousRun: BatchDescription | null;
  readonly startBy: number;
  readonly startedEarlier: StartedItems | null;
}

/** Starts a run of the batch. @returns false if another client started a run first */
async function startRun(
  { client, taskQueue, options, signal }: BatchStartContext,
  batchId: string,
  { items, chunks, digest, count }: Source,
  { previousRun, startBy, startedEarlier, retryScope }: NextRun,
): Promise<boolean> {
  const concurrency = options.concurrency ?? previousRun?.memo?.concurrency ?? CONCURRENCY.default;
  const maxFailures =
    (options.maxFailures === undefined ? previousRun?.memo?.maxFailures : options.maxFailures) ?? null;
  const settings = { batchId, concurrency, maxFailures, digest, startedEarlier, retryScope };
  signal.throwIfAborted();
  const runAgain = retryScope === null ? 'ALLOW_DUPLICATE_FAILED_ONLY' : 'ALLOW_DUPLICATE';
  try {
    await client.withDeadline(startBy, () =>
      client.workflow.start(BATCH_WORKFLOW, {
        ...batchStartOptions(batchId),
        workflowId: batchWorkflowId(batchId),
        taskQueue,
        args: [{ ...settings, items, chunks } satisfies BatchInput],
        workflowIdConflictPolicy: 'FAIL',
        workflowIdReusePolicy: previousRun === null ? 'REJECT_DUPLICATE' : runAgain,
        staticSummary: batchTitle(count),
      }),
    );
    return true;
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return false;
    throw error;
  }
}

/**
 * The start delay of a chunk. No worker runs the chunk during this delay. Usually, the batch ends earlier and terminates the
 * chunk.
 */
const CHUNK_DELAY = '365 days';

/**
 * Stores the chunks before the batch starts. If the client stops in between, no follow-up was started, and the call can be
 * repeated.
 */
async function storeChunks(
  { client, taskQueue, signal }: BatchStartContext,
  batchId: string,
  { chunks, digest, read }: Source,
): Promise<void> {
  const { firsts = [] } = chunks ?? {};
  await eachConcurrently(firsts.keys(), async (chunk) => {
    const items = await read(chunk);
    signal.throwIfAborted();
    await client.workflow.start(CHUNK_WORKFLOW, {
      ...batchStartOptions(batchId),
      workflowId: chunkWorkflowId(batchId, digest ?? '', chunk),
      taskQueue,
      args: [{ items }],
      startDelay: CHUNK_DELAY,
      // Chunks with the same ID have the same content. A chunk that has ended is started again, because retention removes it.
      workflowIdConflictPolicy: 'USE_EXISTING',
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      staticSummary: `Chunk ${chunk + 1} of the items of a batch`,
    });
  });
}

import { type Client, WorkflowClient, type WorkflowExecutionInfo } from '@temporalio/client';
import type { PayloadCodec } from '@temporalio/common';
import { type RecordedOutcome, outcomeFromMemo, createOutcomeWithoutReceipt } from '../contract/outcome';
import { FOLLOW_UP_WORKFLOW, MEMO_RECEIPT } from '../contract/names';
import { canRetry } from '../contract/result';
import { keywordAttribute } from '../contract/follow-up-start-options';
import { toRunState } from './workflow-executions';
import { decodeFirstPayload } from './sdk-internals';

type AttributeFilters = readonly ReturnType<typeof keywordAttribute>[];

/** The follow-ups that have these attributes, without their memos. Eventually consistent. */
export async function* listWorkflows(
  client: Client,
  filters: AttributeFilters,
  { restriction = '', pageSize = 100 } = {},
): AsyncGenerator<WorkflowExecutionInfo, void, undefined> {
  const query = visibilityQuery(filters) + restriction;
  const undecoded = new WorkflowClient(undecodedClientOptions(client));
  for await (const info of undecoded.list({ query, pageSize }))
    if (filters.every(({ key, value }) => info.typedSearchAttributes.get(key) === value)) yield info;
}

const RUNNING = ' AND CloseTime IS NULL';

/** A list is a moment behind; what happened so long ago is in it. */
export const LIST_LAG_MS = 60_000;

/** The workflow ids of the follow-ups of a batch that run. */
export async function listRunningIds(client: Client, batchId: string): Promise<Set<string>> {
  const runningIds = new Set<string>();
  const options = { restriction: RUNNING, pageSize: 1_000 };
  for await (const { workflowId } of listWorkflows(
    client,
    [keywordAttribute('FollowUpBatch', batchId)],
    options,
  ))
    runningIds.add(workflowId);
  return runningIds;
}

/** Lists the workflow IDs of the running follow-ups to any job with one of these job IDs, with one query. */
export async function listRunningIdsForJobs(client: Client, jobIds: Iterable<string>): Promise<Set<string>> {
  const running = new Set<string>();
  const jobs = [...jobIds].map((jobId) => visibilityClause(keywordAttribute('AgentJob', jobId)));
  const options = { restriction: `${RUNNING} AND (${jobs.join(' OR ')})`, pageSize: 1_000 };
  for await (const { workflowId } of listWorkflows(client, [], options)) running.add(workflowId);
  return running;
}

export interface ListedOutcome {
  /** Null if only the workflow's result has the outcome. */
  readonly outcome: RecordedOutcome | null;
  readonly closedAt: Date;
  readonly startedAt: Date;
}

/** Memos of a page: each has some 3 KB, and an answer of the server 4 MB at most. */
const OUTCOMES_PER_PAGE = 250;

/**
 * Adds the latest end of each follow-up of a batch, by their memos.
 *
 * @param since none that ended before @param alive is called for each
 */
export async function collectOutcomes(
  client: Client,
  batchId: string,
  outcomes: Map<string, ListedOutcome>,
  { since, alive }: { readonly since?: Date | undefined; readonly alive?: () => Promise<void> } = {},
): Promise<ReadonlyMap<string, ListedOutcome>> {
  const restriction =
    since === undefined ? ' AND CloseTime IS NOT NULL' : ` AND CloseTime >= '${since.toISOString()}'`;
  const ofBatch = [keywordAttribute('FollowUpBatch', batchId)];
  for await (const info of listWorkflows(client, ofBatch, { restriction, pageSize: OUTCOMES_PER_PAGE })) {
    const { workflowId, closeTime, startTime } = info;
    const known = outcomes.get(workflowId);
    // Each run is listed by itself.
    if (closeTime !== undefined && (known === undefined || known.startedAt <= startTime))
      outcomes.set(workflowId, {
        outcome: await outcomeFromListing(client, info),
        closedAt: closeTime,
        startedAt: startTime,
      });
    await alive?.();
  }
  return outcomes;
}

/** The outcome in a visibility list, if it is final: a later run may send a message that was not sent or was rejected. */
export function finalOutcome(listed: ListedOutcome | undefined): RecordedOutcome | undefined {
  const outcome = listed?.outcome;
  if (!outcome) return undefined;
  return outcome.delivery === null || canRetry(outcome.delivery) ? undefined : outcome;
}

async function outcomeFromListing(
  client: Client,
  { workflowId, status, raw }: WorkflowExecutionInfo,
): Promise<RecordedOutcome | null> {
  const state = toRunState(status.name);
  if (state === 'terminated' || state === 'timed-out') return createOutcomeWithoutReceipt(state);
  const payload = raw.memo?.fields?.[MEMO_RECEIPT];
  if (!payload) return null;
  try {
    return outcomeFromMemo(await decodeFirstPayload(client, [payload], workflowId));
  } catch {
    // Another program wrote the memo. A query for this follow-up reports it.
    return null;
  }
}

/**
 * The visibility query, which may find too much but never too little: the caller compares. Not every way of writing a quote,
 * a backslash or a control character matches (measured on SQL visibility, server 1.31.2): a value is looked for up to there.
 */
function visibilityQuery(filters: AttributeFilters): string {
  return [`WorkflowType = '${FOLLOW_UP_WORKFLOW}'`, ...filters.map(visibilityClause)].join(' AND ');
}

function visibilityClause({ key: { name }, value }: AttributeFilters[number]): string {
  const beginning = /^[^'"\\\p{Cc}]+/u.exec(value)?.[0];
  if (beginning === undefined) return `${name} IS NOT NULL`;
  return `${name} ${beginning === value ? '=' : 'STARTS_WITH'} '${beginning}'`;
}

const discardingCodec: PayloadCodec = {
  encode: (payloads) => Promise.resolve(payloads),
  decode: (payloads) =>
    Promise.resolve(payloads.map(() => ({ metadata: { encoding: Buffer.from('binary/null') } }))),
};

/** Client options for lists without memos: a memo that another service encrypted would end the list with an error. */
export function undecodedClientOptions({ connection, options: { namespace, identity } }: Client) {
  return { connection, namespace, identity, dataConverter: { payloadCodecs: [discardingCodec] } };
}

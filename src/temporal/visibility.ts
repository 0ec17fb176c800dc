import { type Client, WorkflowClient, type WorkflowExecutionInfo } from '@temporalio/client';
import type { PayloadCodec } from '@temporalio/common';
import { type RecordedOutcome, outcomeFromMemo, createOutcomeWithoutReceipt } from '../contract/outcome';
import { FOLLOW_UP_WORKFLOW, MEMO_RECEIPT } from '../contract/names';
import { keywordAttribute } from '../contract/follow-up-start-options';
import { eachConcurrently, groupsOf } from './each-concurrently';
import { describeWorkflow, toRunState } from './workflow-executions';
import { decodeFirstPayload } from './raw-requests';

type AttributeFilters = readonly ReturnType<typeof keywordAttribute>[];

/** Lists the follow-ups with these attributes, without decoding their memos. The list is eventually consistent. */
export async function* listFollowUpRuns(
  client: Client,
  filters: AttributeFilters,
  { restriction = '', pageSize = 100 } = {},
): AsyncGenerator<WorkflowExecutionInfo, void, undefined> {
  const query = visibilityQuery(filters) + restriction;
  const { workflow } = undecodedClient(client);
  for await (const info of workflow.list({ query, pageSize }))
    if (filters.every(({ key, value }) => info.typedSearchAttributes.get(key) === value)) yield info;
}

/** The number of workflow IDs in one query. An ID has at most 255 bytes. */
const IDS_PER_QUERY = 50;

/**
 * Yields the runs that are the latest run of their workflow. A visibility list has every run of a workflow, and no attribute of a run
 * shows whether a later run exists. A workflow has at most one open run, so an open run is the latest one. For each group of
 * {@link IDS_PER_QUERY} ended runs, one more query lists all runs of their workflows.
 *
 * @param runs the listed runs; a run that ends during the list may be listed twice, and is yielded once
 */
export async function* latestRuns(
  client: Client,
  runs: AsyncIterable<WorkflowExecutionInfo>,
): AsyncGenerator<WorkflowExecutionInfo, void, undefined> {
  const openIds = new Set<string>();
  for await (const group of groupsOf(runs, IDS_PER_QUERY)) {
    const ended = group.filter(({ closeTime }) => closeTime !== undefined);
    const latestRunIds = await findLatestRunIds(client, ended);
    for (const run of group) {
      const { workflowId, runId, closeTime } = run;
      if (openIds.has(workflowId) || (latestRunIds.get(workflowId) ?? runId) !== runId) continue;
      if (closeTime === undefined) openIds.add(workflowId);
      yield run;
    }
  }
}

/** Returns the ID of the latest run of each workflow. The runs of one workflow end one after another, so the latest run ends last. */
async function findLatestRunIds(
  client: Client,
  ended: readonly WorkflowExecutionInfo[],
): Promise<ReadonlyMap<string, string>> {
  const runIds = new Map<string, string>();
  const undecoded = undecodedClient(client);
  const ids = [...new Set(ended.map(({ workflowId }) => workflowId))];
  // A query can't compare some characters (see `visibilityQuery`), and only IDs that another program chose have them.
  const [exact, others] = [ids.filter(isComparable), ids.filter((id) => !isComparable(id))];
  await eachConcurrently(others, async (workflowId) => {
    const latest = await describeWorkflow(undecoded, workflowId);
    if (latest !== null) runIds.set(workflowId, latest.runId);
  });
  if (exact.length === 0) return runIds;
  const since = new Date(Math.min(...ended.map(({ closeTime }) => Number(closeTime))));
  const query =
    visibilityQuery([]) +
    ` AND WorkflowId IN (${exact.map((id) => `'${id}'`).join(', ')})` +
    ` AND (CloseTime IS NULL OR CloseTime >= '${since.toISOString()}')`;
  const endTimes = new Map<string, number>();
  for await (const { workflowId, runId, closeTime } of undecoded.workflow.list({
    query,
    pageSize: OUTCOMES_PER_PAGE,
  })) {
    const endTime = closeTime?.getTime() ?? Infinity;
    if (endTime < (endTimes.get(workflowId) ?? 0)) continue;
    endTimes.set(workflowId, endTime);
    runIds.set(workflowId, runId);
  }
  return runIds;
}

/** The assumed maximum lag of the visibility list. Workflows that ended longer ago than this are assumed to be listed. */
export const LIST_LAG_MS = 60_000;

/** Lists the workflow IDs of a batch's running follow-ups. */
export async function listRunningIds(client: Client, batchId: string): Promise<Set<string>> {
  const ids = new Set<string>();
  const filters = [keywordAttribute('FollowUpBatch', batchId)];
  const options = { restriction: ' AND CloseTime IS NULL', pageSize: 1_000 };
  for await (const { workflowId } of listFollowUpRuns(client, filters, options)) ids.add(workflowId);
  return ids;
}

export interface ListedOutcome {
  /** Null if only the workflow's result has the outcome, or if the memo can't be decoded. */
  readonly outcome: RecordedOutcome | null;
  readonly closedAt: Date;
  readonly startedAt: Date;
}

/** The page size of lists with memos. A memo has about 3 KB, and a response of the Temporal server has at most 4 MB. */
const OUTCOMES_PER_PAGE = 250;

/**
 * Adds the latest recorded outcome of each follow-up of a batch to `outcomes`, from the memos in the visibility list.
 *
 * @param since omits runs that ended earlier
 * @param keepAlive is called for each listed run, so that an activity can report its heartbeat
 */
export async function collectOutcomes(
  client: Client,
  batchId: string,
  outcomes: Map<string, ListedOutcome>,
  { since, keepAlive }: { readonly since?: Date | undefined; readonly keepAlive?: () => Promise<void> } = {},
): Promise<ReadonlyMap<string, ListedOutcome>> {
  const restriction =
    since === undefined ? ' AND CloseTime IS NOT NULL' : ` AND CloseTime >= '${since.toISOString()}'`;
  const filters = [keywordAttribute('FollowUpBatch', batchId)];
  for await (const info of listFollowUpRuns(client, filters, { restriction, pageSize: OUTCOMES_PER_PAGE })) {
    const { workflowId, closeTime, startTime } = info;
    const known = outcomes.get(workflowId);
    // The list has each run of a follow-up, so only the latest run counts.
    if (closeTime !== undefined && (known === undefined || known.startedAt <= startTime))
      outcomes.set(workflowId, {
        outcome: await outcomeFromListing(client, info),
        closedAt: closeTime,
        startedAt: startTime,
      });
    await keepAlive?.();
  }
  return outcomes;
}

/**
 * Returns a listed outcome unless a retry can change it, so that a later run may have another outcome. An outcome without a
 * verdict, for example of a terminated item, is not returned.
 */
export function finalOutcome(listed: ListedOutcome | undefined): RecordedOutcome | undefined {
  const outcome = listed?.outcome;
  return outcome?.delivery === 'accepted' ? outcome : undefined;
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
    // Another program may have written the memo. `fetchOutcome` reports the problem of this follow-up.
    return null;
  }
}

/**
 * Builds a visibility query, which may match too many workflows but never too few. The caller therefore compares the attributes.
 * In the SQL visibility of Temporal server 1.31.2, some escapes of a quote, a backslash or a control character do not match. The
 * query compares a value only up to the first of these characters.
 */
function visibilityQuery(filters: AttributeFilters): string {
  return [`WorkflowType = '${FOLLOW_UP_WORKFLOW}'`, ...filters.map(visibilityClause)].join(' AND ');
}

function isComparable(value: string): boolean {
  return comparablePrefix(value) === value;
}

function comparablePrefix(value: string): string | undefined {
  return /^[^'"\\\p{Cc}]+/u.exec(value)?.[0];
}

function visibilityClause({ key: { name }, value }: AttributeFilters[number]): string {
  const prefix = comparablePrefix(value);
  if (prefix === undefined) return `${name} IS NOT NULL`;
  return `${name} ${prefix === value ? '=' : 'STARTS_WITH'} '${prefix}'`;
}

const discardingCodec: PayloadCodec = {
  encode: (payloads) => Promise.resolve(payloads),
  decode: (payloads) =>
    Promise.resolve(payloads.map(() => ({ metadata: { encoding: Buffer.from('binary/null') } }))),
};

/** Returns a client that discards memos. Otherwise, a memo that another service encrypted would end a list with an error. */
export function undecodedClient({ connection, options: { namespace, identity } }: Client) {
  const dataConverter = { payloadCodecs: [discardingCodec] };
  return { workflow: new WorkflowClient({ connection, namespace, identity, dataConverter }) };
}

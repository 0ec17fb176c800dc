import { batchIdProblem, checkItems, CONCURRENCY, MAX_INPUT_BYTES, settingProblems } from '../../batch/items';
import { type BatchInputSettings, type BatchSource, isChunks } from '../../batch/memo';
import { isStartedItems } from '../../batch/started-items';
import { isRecord, literalOf, type Problem, problemTexts, text, typeName } from '../../contract/checks';
import { RETRY_SCOPES } from '../../contract/outcome';
import { toBatchId, batchWorkflowId } from '../../contract/ids';
import { jsonByteLength, quote } from '../../contract/text';
import { nonRetryableError } from '../non-retryable-error';

/** A checked input with its defaults. */
export type BatchPlan = BatchInputSettings & BatchSource;

const NULL_DEFAULTS = { maxFailures: null, digest: null, startedEarlier: null, retryScope: null };

const DEFAULTS = { concurrency: CONCURRENCY.default, ...NULL_DEFAULTS };

const FIELDS = ['batchId', 'items', 'chunks', ...Object.keys(DEFAULTS)];

/**
 * The maximum number of problems, because an input may have a million problems, and a workflow task may take at most a few
 * seconds.
 */
const ENOUGH_PROBLEMS = 1_000;

const CLIENT_FIELDS = {
  chunks: isChunks,
  digest: text,
  startedEarlier: isStartedItems,
  retryScope: literalOf(...RETRY_SCOPES),
};

/**
 * Checks the input, because an invalid input would stall the batch later.
 *
 * @throws ApplicationFailure `InvalidBatch` with the problems
 */
export function checkBatchInput(input: unknown, workflowId: string): BatchPlan {
  if (!isRecord(input))
    throw invalidBatchError([
      { field: 'input', text: `must be one JSON object, a BatchInput, not ${typeName(input)}` },
    ]);
  const problems: Problem[] = [];
  const report = (field: string, text: string) => problems.push({ field, text });
  const definedFields = Object.fromEntries(
    Object.entries(input).filter(([, value]) => (value ?? null) !== null),
  );
  const plan = { batchId: toBatchId(workflowId), ...DEFAULTS, ...definedFields } as BatchPlan;
  const { batchId, items, concurrency, maxFailures } = plan;
  const idProblem = batchIdProblem(batchId);
  if (idProblem !== undefined) report('batchId', idProblem);
  else if (batchWorkflowId(batchId) !== workflowId)
    report('batchId', `${quote(batchId)} does not belong to the workflow ID ${quote(workflowId)}`);
  const others = Object.keys(input).filter((each) => !FIELDS.includes(each));
  for (const name of others.slice(0, ENOUGH_PROBLEMS))
    report('input', `${quote(name)} is not a valid field; the valid fields are ${FIELDS.join(', ')}`);
  problems.push(...settingProblems(concurrency, maxFailures));
  for (const [name, isValid] of Object.entries(CLIENT_FIELDS))
    if (name in definedFields && !isValid(definedFields[name]))
      report(name, 'must be absent or a value that the client of this project wrote');
  if ('items' in definedFields === 'chunks' in definedFields)
    report('items', 'set either items or chunks, and not both');
  else if (Array.isArray(items) && items.length > 0 && jsonByteLength(items) <= MAX_INPUT_BYTES)
    problems.push(...checkItems(items, idProblem === undefined ? batchId : 'b', ENOUGH_PROBLEMS).problems);
  else if ('items' in definedFields)
    report('items', `must be a list of at least one request, with at most ${MAX_INPUT_BYTES} bytes as JSON`);
  if (problems.length > 0) throw invalidBatchError(problems);
  return plan;
}

function invalidBatchError(problems: readonly Problem[]) {
  return nonRetryableError('InvalidBatch', `Invalid batch: ${problemTexts(problems)}. Nothing was sent.`);
}

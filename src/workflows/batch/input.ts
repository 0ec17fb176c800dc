import { batchIdProblem, checkItems, CONCURRENCY, MAX_INPUT_BYTES, settingProblems } from '../../batch/items';
import { type BatchGiven, type BatchSource, isChunks } from '../../batch/memo';
import { isStartedItems } from '../../batch/started-items';
import { isRecord, oneOf, type Problem, problemTexts, text, typeName } from '../../contract/checks';
import { TRY_AGAIN } from '../../contract/outcome';
import { batchIdOf, batchWorkflowId } from '../../contract/ids';
import { jsonBytes, quote } from '../../contract/text';
import { failure } from '../failure';

export type BatchPlan = BatchGiven & BatchSource;

const NOTHING = { maxFailures: null, digest: null, startedEarlier: null, again: null };

const DEFAULTS = { concurrency: CONCURRENCY.default, ...NOTHING };

const FIELDS = ['batchId', 'items', 'chunks', ...Object.keys(DEFAULTS)];

/** Fields and items may have a million problems, and a workflow task may take five seconds at most. */
const ENOUGH_PROBLEMS = 1_000;

const CLIENT_FIELDS = {
  chunks: isChunks,
  digest: text,
  startedEarlier: isStartedItems,
  again: oneOf(...TRY_AGAIN),
};

/** An invalid input would stall the batch later. @throws ApplicationFailure `InvalidBatch` with every problem */
export function checkBatch(input: unknown, workflowId: string): BatchPlan {
  if (!isRecord(input))
    throw invalid([
      { field: 'input', text: `must be one JSON object, a BatchInput, not ${typeName(input)}` },
    ]);
  const problems: Problem[] = [];
  const report = (field: string, text: string) => problems.push({ field, text });
  const given = Object.fromEntries(Object.entries(input).filter(([, value]) => (value ?? null) !== null));
  const plan = { batchId: batchIdOf(workflowId), ...DEFAULTS, ...given } as BatchPlan;
  const { batchId, items, concurrency, maxFailures } = plan;
  const badId = batchIdProblem(batchId);
  if (badId !== undefined) report('batchId', badId);
  else if (batchWorkflowId(batchId) !== workflowId)
    report('batchId', `${quote(batchId)} does not belong to the workflow ID ${quote(workflowId)}`);
  const others = Object.keys(input).filter((each) => !FIELDS.includes(each));
  for (const name of others.slice(0, ENOUGH_PROBLEMS))
    report('input', `${quote(name)} is not a field here; the fields are ${FIELDS.join(', ')}`);
  problems.push(...settingProblems(concurrency, maxFailures));
  for (const [name, isRight] of Object.entries(CLIENT_FIELDS))
    if (name in given && !isRight(given[name])) report(name, 'must be a value that the client made');
  if ('items' in given === 'chunks' in given)
    report('items', 'either items or chunks must be given, and not both');
  else if (Array.isArray(items) && items.length > 0 && jsonBytes(items) <= MAX_INPUT_BYTES)
    problems.push(...checkItems(items, badId === undefined ? batchId : 'b', ENOUGH_PROBLEMS).problems);
  else if ('items' in given)
    report('items', `must be a list of 1 or more requests, at most ${MAX_INPUT_BYTES} bytes as JSON`);
  if (problems.length > 0) throw invalid(problems);
  return plan;
}

function invalid(problems: readonly Problem[]) {
  return failure('InvalidBatch', `Invalid batch: ${problemTexts(problems)}. Nothing was sent.`);
}

import type { BatchItem } from '../contract/batch';
import { requestIdOf } from '../contract/batch-id';
import { truncate } from '../contract/bounds';
import { checkRequest } from '../contract/check-request';
import { isRecord, typeName } from '../contract/field-reader';
import { followUpWorkflowId } from '../contract/workflow-id';

/** Problems that are told; of those beyond, only how many there are. */
const MAX_PROBLEMS = 20;

/** Characters of one problem: what is wrong may hold what was given. */
const MAX_PROBLEM_CHARACTERS = 300;

const SHAPE = 'an item is { "key", "request", "promptDigest" }';

/**
 * What is wrong with the items of a batch, whoever made them; empty where they can be run.
 *
 * @param batchId a valid one: it is part of the items' names
 */
export function itemProblems(items: readonly unknown[], batchId: string): string[] {
  const problems: string[] = [];
  let count = 0;
  const names = new Map<string, number>();
  for (const [index, item] of items.entries()) {
    for (const problem of problemsOf(item, index + 1, batchId, names)) {
      count += 1;
      if (count <= MAX_PROBLEMS)
        problems.push(truncate(`item ${index + 1}: ${problem}`, MAX_PROBLEM_CHARACTERS));
    }
  }
  if (count > MAX_PROBLEMS) problems.push(`… and ${count - MAX_PROBLEMS} more`);
  return problems;
}

function problemsOf(item: unknown, place: number, batchId: string, names: Map<string, number>): string[] {
  if (!isRecord(item)) return [`must be an object, not ${typeName(item)}; ${SHAPE}`];
  const { key, request, promptDigest } = item;
  if (!isRecord(request)) return [`request: must be an object, not ${typeName(request)}; ${SHAPE}`];
  if (typeof promptDigest !== 'string' || !/^[0-9a-f]{64}$/.test(promptDigest))
    return ['promptDigest: must be the SHA-256 of the prompt, 64 hexadecimal digits'];
  const isNamed = (request.requestId ?? undefined) !== undefined;
  if (!isNamed && (typeof key !== 'string' || key === '' || !key.isWellFormed()))
    return ['key: must be a text, because the request has no requestId of its own'];
  const requestId: unknown = isNamed ? request.requestId : `${batchId}-${String(key)}`;
  const checked = checkRequest({ ...request, requestId });
  if (!checked.ok) return [...checked.problems];
  const { projectId, jobId } = checked.plan;
  const name = followUpWorkflowId(projectId, jobId, requestIdOf(batchId, item as unknown as BatchItem));
  const other = names.get(name);
  names.set(name, place);
  return other === undefined ? [] : [`is the same follow-up as item ${other}: give it a key of its own`];
}

import { type BatchItem, MAX_BATCH_ITEMS, batchIdProblem, requestIdOf } from '../../core/batch';
import { checkRequest } from '../../core/check-request';
import { type JsonObject, jsonBytes } from '../../core/json';
import { followUpWorkflowId } from '../../core/ids';
import { type Problem, problemText } from '../../core/problem';
import type { FollowUpPlan, FollowUpRequest } from '../../core/request';
import { MAX_WORKFLOW_ID_BYTES, truncate } from '../../core/text';
import { promptDigest } from '../../temporal/existing-run';
import { InvalidRequestError } from '../errors';
import {
  BATCH_ID_DIGITS,
  defaultBatchId,
  itemKey,
  itemsDigest,
  tidyRequest,
  withBatchCadence,
} from './identity';

/** A batch whose every item was checked; nothing of it is started yet. */
export interface CheckedBatch {
  /** As given, or a hash of the items. */
  readonly batchId: string;
  /** In the order of the input. */
  readonly items: readonly BatchItem[];
  /** The SHA-256 of items, options and order, in hexadecimal digits: whether a batch that is there is this very one. */
  readonly digest: string;
}

interface CollectorOptions {
  /** What the places of items are called in problems: `line`, `item`. */
  readonly unit: string;
  /** @default a hash of the items */
  readonly batchId?: string | undefined;
  /** Why no item may have a `requestId` of its own; undefined where each may. */
  readonly noNames?: string | undefined;
}

/** Bytes as JSON of what an item has beside its prompt; with the largest prompt it stays below the 2 MiB of a payload. */
const MAX_OPTION_BYTES = 8_192;

/** A name for the checker where the item has none of its own: its name is made when the batch has its id. */
const NO_NAME_YET = 'follow-up-of-a-batch';

/** Checks the items of a batch one by one, and gives those that can't be taken a reason. */
export class ItemCollector {
  readonly problems: ProblemList;
  private readonly items: BatchItem[] = [];
  private count = 0;
  private readonly batchId: string | undefined;
  private readonly noNames: string | undefined;
  /** The prompts by their digests: most batches send the same message to many jobs, and hold it once. */
  private readonly prompts = new Map<string, string>();
  /** How often each message to each job has come. */
  private readonly occurrences = new Map<string, number>();
  /** The workflow ids of items with names of their own, and the places of these. */
  private readonly named = new Map<string, number>();
  private readonly keys = new Set<string>();

  /** @throws InvalidRequestError when the batch id is none */
  constructor(options: CollectorOptions) {
    this.problems = new ProblemList(options.unit);
    this.batchId = options.batchId;
    this.noNames = options.noNames;
    const problem = options.batchId === undefined ? undefined : batchIdProblem(options.batchId);
    if (problem !== undefined) throw new InvalidRequestError([{ field: 'batchId', text: problem }]);
  }

  /**
   * Checks one request and takes it into the batch.
   *
   * @param place its line or number, for the problems
   * @param input of any type
   * @param nameOf the caller's names for fields, for the problems
   * @throws InvalidRequestError when there are too many items
   */
  add(place: number, input: unknown, nameOf: Readonly<Record<string, string>> = {}): void {
    this.count += 1;
    if (this.count > MAX_BATCH_ITEMS) {
      this.problems.addGeneral(`a batch has at most ${MAX_BATCH_ITEMS} items, and there are more; divide it`);
      throw new InvalidRequestError(this.problems.all());
    }
    const request = withBatchCadence(input) as JsonObject;
    const isNamed = hasRequestId(input);
    if (isNamed && this.noNames !== undefined)
      this.problems.add(place, problemText({ field: 'requestId', text: this.noNames }, nameOf));
    const checked = checkRequest(request, isNamed ? undefined : NO_NAME_YET);
    const problems = checked.ok ? [] : checked.problems;
    for (const problem of problems) this.problems.add(place, problemText(problem, nameOf));
    if (checked.ok) this.take(place, request, checked.plan, isNamed, nameOf);
  }

  /** @throws InvalidRequestError with every problem, also where there are no items at all */
  finish(): CheckedBatch {
    if (this.count === 0 && this.problems.isEmpty) this.problems.addGeneral('there are no items');
    if (!this.problems.isEmpty) throw new InvalidRequestError(this.problems.all());
    const { items } = this;
    return { batchId: this.batchId ?? defaultBatchId(items), items, digest: itemsDigest(items) };
  }

  private take(
    place: number,
    input: JsonObject,
    plan: FollowUpPlan,
    isNamed: boolean,
    nameOf: Readonly<Record<string, string>>,
  ): void {
    const digest = promptDigest(plan.prompt);
    const prompt = this.prompts.get(digest) ?? plan.prompt;
    this.prompts.set(digest, prompt);
    const request = tidyRequest(input, prompt);
    const key = isNamed ? null : this.nextKey(plan, digest);
    const item: BatchItem = { key, request, promptDigest: digest };
    const problem = isNamed ? this.nameProblem(place, plan) : this.keyProblem(item);
    if (problem !== undefined)
      this.problems.add(place, problemText({ field: 'requestId', text: problem }, nameOf));
    const bytes = jsonBytes({ ...request, prompt: '' });
    if (bytes > MAX_OPTION_BYTES) {
      this.problems.add(
        place,
        `its fields beside the prompt take ${bytes} bytes as JSON; at most ${MAX_OPTION_BYTES} are possible`,
      );
    }
    // What can't be started need not be held; the problems alone are told.
    if (this.problems.isEmpty) this.items.push(item);
    else this.items.length = 0;
  }

  private nextKey({ projectId, jobId }: FollowUpPlan, digest: string): string {
    const message = JSON.stringify([projectId, jobId, digest]);
    const occurrence = (this.occurrences.get(message) ?? 0) + 1;
    this.occurrences.set(message, occurrence);
    return itemKey(projectId, jobId, digest, occurrence);
  }

  private nameProblem(place: number, { projectId, jobId, requestId }: FollowUpPlan): string | undefined {
    const workflowId = followUpWorkflowId(projectId, jobId, requestId);
    const first = this.named.get(workflowId);
    if (first !== undefined)
      return `${JSON.stringify(requestId)} is already used by ${this.problems.unit} ${first} for the same job; choose another`;
    this.named.set(workflowId, place);
    return undefined;
  }

  private keyProblem(item: BatchItem): string | undefined {
    const { projectId, jobId } = item.request;
    const key = item.key ?? '';
    if (this.keys.has(key))
      return 'is missing, and the hash of this item is that of another one; give it a request id';
    this.keys.add(key);
    // A batch id that is a hash has this length.
    const name = requestIdOf(this.batchId ?? '0'.repeat(BATCH_ID_DIGITS), item);
    const bytes = followUpWorkflowId(projectId, jobId, name).length;
    return bytes > MAX_WORKFLOW_ID_BYTES
      ? `is missing, and with the one that the batch would make (${name.length} characters) the workflow id would be ${bytes} bytes long; at most ${MAX_WORKFLOW_ID_BYTES} are possible, so give a shorter one${this.batchId === undefined ? '' : ', or a shorter batch id'}`
      : undefined;
  }
}

function hasRequestId(input: unknown): boolean {
  return ((input as { requestId?: unknown } | null | undefined)?.requestId ?? undefined) !== undefined;
}

/**
 * Checks requests that a program made, before anything is started. Their numbers in problems count from 1.
 *
 * @param batchId 1 to 100 characters; a hash of the items where it is left out
 * @throws InvalidRequestError with every problem, each of which names its item
 */
export async function batchOfRequests(
  requests: Iterable<FollowUpRequest> | AsyncIterable<FollowUpRequest>,
  batchId?: string,
): Promise<CheckedBatch> {
  const collector = new ItemCollector({ unit: 'item', batchId });
  let number = 0;
  for await (const request of requests) {
    number += 1;
    collector.add(number, request);
  }
  return collector.finish();
}

/** Problems that are told one by one: one for each item that can be. Of those beyond, only how many there are. */
const MAX_PROBLEMS = MAX_BATCH_ITEMS;

/** Characters of one problem: what is wrong may hold what was given. */
const MAX_PROBLEM_CHARACTERS = 500;

/** What is wrong with a batch, by place (a line or an item), in bounded space. */
export class ProblemList {
  private readonly kept: { readonly place: number; readonly text: string }[] = [];
  private count = 0;

  /** @param unit what a place is called: `line`, `item` */
  constructor(readonly unit: string) {}

  get isEmpty(): boolean {
    return this.count === 0;
  }

  add(place: number, problem: string): void {
    this.keep(place, problem);
  }

  /** A problem of the whole. */
  addGeneral(problem: string): void {
    this.keep(Infinity, problem);
  }

  /** Each problem, in the order of their places, and how many more there are. */
  all(): Problem[] {
    const { kept, count, unit } = this;
    const problems = kept
      .toSorted((one, other) => byPlace(one.place, other.place))
      .map(({ place, text }) => ({ field: place === Infinity ? 'items' : `${unit} ${place}`, text }));
    const more = count - problems.length;
    return more > 0 ? [...problems, { field: 'items', text: `… and ${more} more problems` }] : problems;
  }

  private keep(place: number, text: string): void {
    this.count += 1;
    if (this.kept.length < MAX_PROBLEMS)
      this.kept.push({ place, text: truncate(text, MAX_PROBLEM_CHARACTERS) });
  }
}

function byPlace(one: number, other: number): number {
  return one === other ? 0 : one - other;
}

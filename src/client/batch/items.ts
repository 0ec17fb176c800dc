import { type BatchItem, MAX_BATCH_ITEMS, batchIdProblem, requestIdOf } from '../../core/batch';
import { checkRequest } from '../../core/check-request';
import { type JsonObject, jsonBytes } from '../../core/json';
import { batchIdOf, followUpWorkflowId } from '../../core/ids';
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

type Named = Pick<BatchItem, 'key' | 'request'>;

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
  /** What each item's name is made of, and the caller's names for its fields. */
  private readonly names: {
    readonly place: number;
    readonly nameOf: Readonly<Record<string, string>>;
    readonly item: Named;
  }[] = [];

  /** @throws InvalidRequestError when the batch id is none */
  constructor(options: CollectorOptions) {
    this.problems = new ProblemList(options.unit);
    this.batchId = options.batchId === undefined ? undefined : batchIdOf(options.batchId);
    this.noNames = options.noNames;
    const problem = this.batchId === undefined ? undefined : batchIdProblem(this.batchId);
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
    const { items } = this;
    // Where there are problems, the items are not held; any batch id of this length makes names of the same length.
    const batchId =
      this.batchId ?? (this.problems.isEmpty ? defaultBatchId(items) : '0'.repeat(BATCH_ID_DIGITS));
    this.checkNames(batchId);
    if (!this.problems.isEmpty) throw new InvalidRequestError(this.problems.all());
    return { batchId, items, digest: itemsDigest(items) };
  }

  /** Each item's name, its own or the one that the batch makes, must be another one. */
  private checkNames(batchId: string): void {
    const places = new Map<string, number>();
    for (const { place, nameOf, item } of this.names) {
      const { projectId, jobId } = item.request;
      const name = requestIdOf(batchId, item);
      const workflowId = followUpWorkflowId(projectId, jobId, name);
      const other = places.get(workflowId);
      if (other !== undefined) {
        const choice = item.key === null ? 'choose another' : 'give this one a name of its own';
        const text = `${JSON.stringify(name)} is already used by ${this.problems.unit} ${other} for the same job; ${choice}`;
        this.problems.add(place, problemText({ field: 'requestId', text }, nameOf));
      } else if (workflowId.length > MAX_WORKFLOW_ID_BYTES) {
        const text = `is missing, and with the one that the batch would make (${name.length} characters) the workflow id would be ${workflowId.length} bytes long; at most ${MAX_WORKFLOW_ID_BYTES} are possible, so give a shorter one${this.batchId === undefined ? '' : ', or a shorter batch id'}`;
        this.problems.add(place, problemText({ field: 'requestId', text }, nameOf));
      }
      places.set(workflowId, other ?? place);
    }
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
    this.names.push({ place, nameOf, item: { key, request: { ...request, prompt: '' } } });
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

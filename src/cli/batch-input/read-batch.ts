import {
  type Format,
  type LineBlock,
  formatByName,
  lineBlocks,
  checkEncoding,
  formatByContent,
} from './line-blocks';
import { withBatchCadence } from '../../client/batch/identity';
import { type CheckedBatch, ItemCollector, type ProblemList } from '../../client/batch/items';
import { checkRequest } from '../../core/check-request';
import type { JsonObject } from '../../core/json';
import { problemText } from '../../core/problem';
import { fieldOf, requestWith } from '../../core/request-options';
import { UsageError } from '../exit-codes';
import { FIELDS, FLAG_OF_FIELD, type LineFlags, requestOfFlags } from '../flags/request-flags';
import { COLUMN_OF_FIELD, type LineFields, readCsv, readJsonLines } from './lines';

export interface BatchInput {
  /** A path, or `-` for stdin. */
  readonly file: string;
  readonly stdin: AsyncIterable<Uint8Array>;
  /**
   * Defaults of the lines, and `--format`. A request id is never taken from here, because it names one follow-up.
   */
  readonly flags: LineFlags;
  /** The message of lines without one. */
  readonly prompt?: string | undefined;
  /** @default a hash of the items */
  readonly batchId?: string | undefined;
  /** Why no line may have a request id; undefined where each may. */
  readonly noNames?: string | undefined;
}

/**
 * Reads and checks the whole input of a batch: JSON Lines or CSV. Nothing is started.
 *
 * @throws UsageError when the file can't be read, or when the flags themselves are invalid
 * @throws InvalidRequestError with every line that is wrong, and why
 */
export async function readBatch(input: BatchInput): Promise<CheckedBatch> {
  const { file, stdin, flags, prompt, batchId, noNames } = input;
  const defaults = requestOfFlags(flags, prompt, undefined);
  checkDefaults(defaults);
  const collector = new ItemCollector({ unit: 'line', batchId, noNames });
  const take = (line: number, fields: LineFields): void => {
    collector.add(line, requestOfLine(defaults, fields), namesIn(fields));
  };
  await readLines(formatByName(file, flags.format), lineBlocks(file, stdin), collector.problems, take);
  return collector.finish();
}

async function readLines(
  named: Format | undefined,
  blocks: AsyncGenerator<LineBlock, void, undefined>,
  problems: ProblemList,
  take: (line: number, fields: LineFields) => void,
): Promise<void> {
  const first = await firstContent(blocks);
  if (first === undefined) return;
  async function* checked(block: LineBlock): AsyncGenerator<LineBlock, void, undefined> {
    checkEncoding(block, problems);
    yield block;
    for await (const next of blocks) {
      checkEncoding(next, problems);
      yield next;
    }
  }
  if ((named ?? formatByContent(first)) === 'csv') return readCsv(checked(first), problems, take);
  for await (const block of checked(first)) readJsonLines(block, problems, take);
}

/** The first block that holds more than white space. */
async function firstContent(
  blocks: AsyncGenerator<LineBlock, void, undefined>,
): Promise<LineBlock | undefined> {
  let next = await blocks.next();
  while (next.done !== true && formatByContent(next.value) === undefined) next = await blocks.next();
  return next.done === true ? undefined : next.value;
}

/** Checks the defaults by themselves, so that a problem with them is not reported for every line. */
function checkDefaults(defaults: JsonObject): void {
  const example = { projectId: 'p', jobId: 'j', prompt: 'm', ...defaults, requestId: 'r' };
  const checked = checkRequest(withBatchCadence(example));
  if (!checked.ok)
    throw new UsageError(checked.problems.map((problem) => problemText(problem, FLAG_OF_FIELD)));
}

/** The request of a line: its own fields, then the defaults of the flags. */
function requestOfLine(defaults: JsonObject, fields: LineFields): JsonObject {
  return requestWith(
    FIELDS.map((field) => [field, fields.has(field) ? fields.get(field)?.value : fieldOf(defaults, field)]),
  );
}

/** The names of fields in problems of a line: as the line writes them, otherwise as columns. */
function namesIn(fields: LineFields): Record<string, string> {
  const names: Record<string, string> = { ...COLUMN_OF_FIELD };
  for (const [field, { name }] of fields) names[field] = name;
  return names;
}

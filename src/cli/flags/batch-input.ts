import type { Command } from 'commander';
import { CsvError, parse } from 'csv-parse/sync';
import { parse as parseJson } from 'lossless-json';
import { type CheckedBatch, InvalidRequestError, type Problem, type Tolerance } from '../../client';
import { checkItems, CONCURRENCY, MAX_BATCH_ITEMS } from '../../core/batch/items';
import { isRecord, type JsonObject, problemText, typeName } from '../../core/checks';
import { fieldOf, type FollowUpRequest, type RequestField, requestWith } from '../../core/request';
import { quote } from '../../core/text';
import {
  FIELDS,
  invalid,
  type RequestFlags,
  numberOr,
  readPrompt,
  readText,
  requestOfFlags,
  valueOf,
  wordsOf,
} from './request-flags';

export function addRunFlags(command: Command): Command {
  const { minimum, maximum, default: usual } = CONCURRENCY;
  const places = `how many follow-ups of a batch are open at a time, ${minimum} to ${maximum} (default: ${usual})`;
  const tolerate =
    'beyond this number, or share of all, of failed items none is started, and the batch fails (default: no limit)';
  return command
    .option('--concurrency <n>', places, numberOr)
    .option('--tolerate <n|p%>', tolerate, toleranceOf);
}

/** Any other text as it is, so that the checker can quote it. */
function toleranceOf(text: string): Tolerance {
  const [, number, percent] = /^(\d+(?:\.\d+)?)(%?)$/.exec(text) ?? [];
  if (number === undefined) return text as unknown as Tolerance;
  return percent === '%' ? { percent: Number(number) } : { items: Number(number) };
}

const COLUMN_OF_FIELD = Object.fromEntries(
  FIELDS.map((field) => [field, wordsOf(field).join('_')]),
) as Readonly<Record<RequestField, string>>;

export const COLUMNS = Object.values(COLUMN_OF_FIELD);

/** A field goes by the name of its column, or by its name in the request's JSON. */
function fieldNamed(name: string): RequestField | undefined {
  return FIELDS.find((field) => name === field || name === COLUMN_OF_FIELD[field]);
}

/** The whole input is held in memory, with its items; 100,000 items of 2 KiB are 200 MiB. */
const MAX_INPUT_BYTES = 256 * 1_024 * 1_024;

/** What a line gives, or what is wrong with it. Lines count from 1. */
type Line = readonly [line: number, given: JsonObject | string];

/**
 * Reads and checks the input of a batch from a file or, for `-`, from stdin.
 *
 * @param flags the fields of lines without them
 * @param check of all requests together; the items of its problems become lines
 * @throws InvalidRequestError with what is wrong with the file or the flags, or else with each line
 */
export async function readBatch(
  stdin: AsyncIterable<Uint8Array>,
  file: string,
  flags: RequestFlags,
  check: (requests: readonly FollowUpRequest[]) => Promise<CheckedBatch>,
): Promise<CheckedBatch> {
  if (file === '-' && flags.promptFile === '-')
    throw invalid('--prompt-file', 'stdin can be read only once, and the items are read from it');
  const defaults = requestOfFlags({ ...flags, prompt: await readPrompt(flags, stdin) });
  // By themselves, so that a problem with them is not reported for every line.
  const line = { projectId: 'p', jobId: 'j', prompt: 'm', ...defaults, requestId: 'r' };
  const { problems: ofFlags } = checkItems([line], 'b');
  if (ofFlags.length > 0) throw new InvalidRequestError(ofFlags.map(({ field, text }) => ({ field, text })));
  const text = (await readText(file, stdin, 'items', MAX_INPUT_BYTES)).replace(/^\ufeff/, '');
  const lines: number[] = [];
  const requests: JsonObject[] = [];
  const problems: (Problem & { readonly line: number })[] = [];
  const report = (line: number, words: string): void => {
    if (problems.length < MAX_BATCH_ITEMS) problems.push({ line, field: `line ${line}`, text: words });
  };
  // No column's name begins with a brace or a bracket.
  for (const [line, given] of /^\s*[[{]/.test(text) ? jsonLines(text) : csvLines(text)) {
    const { fields, wrong } = typeof given === 'string' ? { wrong: [given] } : fieldsOf(given);
    for (const words of wrong) report(line, words);
    if (fields === undefined) continue;
    lines.push(line);
    requests.push(requestWith(FIELDS.map((field) => [field, fields.get(field) ?? fieldOf(defaults, field)])));
    // It is clear that they are too many, and the rest is not read.
    if (requests.length > MAX_BATCH_ITEMS) break;
  }
  try {
    // The checker takes whatever a line holds.
    const batch = await check(requests as unknown as FollowUpRequest[]);
    if (problems.length === 0) return batch;
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    for (const { item, ...problem } of error.problems) {
      const line = lines[(item ?? 0) - 1];
      if (line !== undefined) report(line, problemText(problem, COLUMN_OF_FIELD));
      // Where no line can be read, it is no news that there are no items.
      else if (requests.length > 0 || problems.length === 0) problems.push({ line: 0, ...problem });
    }
  }
  throw new InvalidRequestError(problems.sort((one, other) => one.line - other.line));
}

/** JSON Lines (jsonlines.org): one object a line; blank lines are skipped. */
function* jsonLines(text: string): Generator<Line> {
  for (const [index, json] of text.split('\n').entries())
    if (json.trim() !== '') yield [index + 1, objectOf(json)];
}

function objectOf(json: string): JsonObject | string {
  // JSON itself would take the last one.
  const onDuplicateKey = ({ key }: { readonly key: string }): never => {
    throw new SyntaxError(`${quote(key)} is given twice`);
  };
  try {
    const value: unknown = parseJson(json, undefined, { parseNumber: Number, onDuplicateKey });
    if (isRecord(value)) return value;
    return `must be one JSON object, not ${typeName(value)}; JSON Lines has one object a line`;
  } catch (error) {
    if (error instanceof RangeError) return 'is nested too deep';
    if (!(error instanceof SyntaxError)) throw error;
    return `is not JSON (${error.message}); JSON Lines has one whole object a line`;
  }
}

/**
 * CSV (RFC 4180), whose first record names the columns. Empty records are skipped. After a misplaced quote nobody can tell where
 * the next record begins, so the rest is not read.
 */
function* csvLines(text: string): Generator<Line> {
  const records: (readonly [line: number, cells: readonly string[]])[] = [];
  let line = 1;
  let broken: string | undefined;
  const onRecord = (cells: readonly string[]): null => {
    if (cells.some((cell) => cell.trim() !== '')) records.push([line, cells]);
    // The parser's own count takes a CRLF within quotes for two lines. Cells keep their line breaks.
    line += cells.join('').split('\n').length;
    return null;
  };
  try {
    // One record names the columns, and one shows that there are too many.
    const options = { relax_column_count: true, to: MAX_BATCH_ITEMS + 2, record_delimiter: ['\r\n', '\n'] };
    parse(text, { ...options, on_record: onRecord });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const what = error.code.replace(/^CSV_/, '').replaceAll('_', ' ').toLowerCase();
    broken = `is not CSV (${what}); put a cell that has a quote in quotes, and double each quote in it. The rest was not read`;
  }
  const [[first, names] = [1, COLUMNS], ...others] = records;
  const wrong = names.find((name, index) => fieldNamed(name) === undefined || names.indexOf(name) < index);
  // Without names of columns the other records can't be checked.
  if (wrong !== undefined) {
    const words = `must name the columns, separated by commas; ${unknownName(wrong)}`;
    yield [first, fieldNamed(wrong) ? `the column ${wrong} is named twice` : words];
    return;
  }
  for (const [begins, cells] of others) {
    const given = names.map((name, index) => [name, valueOfCell(fieldNamed(name), cells[index])] as const);
    const counts = `has ${cells.length} cells, and the first line names ${names.length} columns; put a cell with a comma, a quote or a line break in quotes`;
    yield [begins, cells.length === names.length ? Object.fromEntries(given) : counts];
  }
  if (broken !== undefined) yield [line, broken];
}

/** An empty cell gives nothing, and other cells are taken as they are, white space included. */
function valueOfCell(field: RequestField | undefined, cell: string | undefined): unknown {
  return field && cell ? valueOf(field, cell) : null;
}

/** The fields that a line gives. Null stands for a field that is not given. */
function fieldsOf({ polling, ...others }: JsonObject) {
  const fields = new Map<RequestField, unknown>();
  const within = isRecord(polling) ? Object.entries(polling) : [];
  const isWrong = !isRecord(polling) && (polling ?? null) !== null;
  const wrong = isWrong ? [`polling: must be an object, not ${typeName(polling)}`] : [];
  const inner = within.map(([name, value]) => [`polling.${name}`, value] as const);
  for (const [name, value] of [...Object.entries(others), ...inner]) {
    const field = fieldNamed(name);
    if (field === undefined) wrong.push(unknownName(name));
    else if (value !== null && fields.has(field))
      wrong.push(`${COLUMN_OF_FIELD[field]} is given twice; give it once`);
    else if (value !== null) fields.set(field, value);
  }
  return { fields, wrong };
}

function unknownName(name: string): string {
  return `${quote(name)} is not a field here; the fields are ${COLUMNS.join(', ')}`;
}

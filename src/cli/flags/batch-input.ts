import type { Command } from 'commander';
import { CsvError, parse } from 'csv-parse/sync';
import { parse as parseJson } from 'lossless-json';
import { InvalidRequestError, type Problem } from '../../entries/client';
import { checkItems, CONCURRENCY, MAX_BATCH_ITEMS } from '../../batch/items';
import { isRecord, type JsonObject, problemText, typeName } from '../../contract/checks';
import { type RequestField, buildRequest } from '../../contract/request';
import { quote } from '../../contract/text';
import {
  FIELDS,
  invalid,
  type RequestFlags,
  toNumberOrText,
  readPrompt,
  readText,
  requestFromFlags,
  parseFieldValue,
  splitFieldName,
} from './request-flags';

export function addRunFlags(command: Command): Command {
  const { minimum, maximum, default: usual } = CONCURRENCY;
  const concurrencyHelp = `how many follow-ups of a batch are open at a time, ${minimum} to ${maximum} (default: ${usual})`;
  const maxFailures =
    'beyond this number, or share of all, of failed items none is started, and the batch fails (default: no limit)';
  return command
    .option('--concurrency <n>', concurrencyHelp, toNumberOrText)
    .option('--max-failures <n|p%>', maxFailures, parseMaxFailures);
}

/** Unchecked. */
function parseMaxFailures(text: string) {
  return text.endsWith('%')
    ? { percent: toNumberOrText(text.slice(0, -1)) }
    : { items: toNumberOrText(text) };
}

const COLUMN_BY_FIELD = Object.fromEntries(
  FIELDS.map((field) => [field, splitFieldName(field).join('_')]),
) as Readonly<Record<RequestField, string>>;

export const COLUMNS = Object.values(COLUMN_BY_FIELD);

function findField(name: string) {
  return FIELDS.find((field) => name === field || name === COLUMN_BY_FIELD[field]);
}

/** The whole input is held in memory, with its items; 100,000 items of 2 KiB are 200 MiB. */
const MAX_INPUT_BYTES = 256 * 1_024 * 1_024;

/** Lines count from 1. */
type Line = readonly [line: number, given: JsonObject];
type Report = (line: number, words: string) => void;

/**
 * Reads and checks the input of a batch from a file or, for `-`, from stdin.
 *
 * @param flags the fields of lines without them
 * @param check of all requests together; the items of its problems become lines
 * @throws InvalidRequestError with what is wrong with the file or the flags, or else with each line
 */
export async function readBatchFile<Checked>(
  stdin: AsyncIterable<Uint8Array>,
  file: string,
  flags: RequestFlags,
  check: (requests: readonly JsonObject[]) => Promise<Checked>,
): Promise<Checked> {
  if (file === '-' && flags.promptFile === '-')
    throw invalid('--prompt-file', 'stdin can be read only once, and the items are read from it');
  const defaults = requestFromFlags({ ...flags, prompt: await readPrompt(flags, stdin) });
  // By themselves, so that a problem with them is not reported for every line.
  const line = { projectId: 'p', jobId: 'j', prompt: 'm', ...defaults, requestId: 'r' };
  const { problems: flagProblems } = checkItems([line], 'b');
  if (flagProblems.length > 0)
    throw new InvalidRequestError(flagProblems.map(({ field, text }) => ({ field, text })));
  const text = (await readText(file, stdin, 'items', MAX_INPUT_BYTES)).replace(/^\ufeff/, '');
  const lines: number[] = [];
  const requests: JsonObject[] = [];
  const problems: (Problem & { readonly line: number })[] = [];
  const report: Report = (line, words) => {
    if (problems.length < MAX_BATCH_ITEMS) problems.push({ line, field: `line ${line}`, text: words });
  };
  const defaultFields = readFields(defaults, 0, report);
  // No column's name begins with a brace or a bracket.
  const read = /^\s*[[{]/.test(text) ? parseJsonLines : parseCsvLines;
  for (const [line, given] of read(text, report)) {
    lines.push(line);
    requests.push(buildRequest([...defaultFields, ...readFields(given, line, report)]));
    // It is clear that they are too many, and the rest is not read.
    if (requests.length > MAX_BATCH_ITEMS) break;
  }
  try {
    const checked = await check(requests);
    if (problems.length === 0) return checked;
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    for (const { item, ...problem } of error.problems) {
      const line = lines[(item ?? 0) - 1];
      if (line !== undefined) report(line, problemText(problem, COLUMN_BY_FIELD));
      // Where no line can be read, it is no news that there are no items.
      else if (requests.length > 0 || problems.length === 0) problems.push({ line: 0, ...problem });
    }
  }
  throw new InvalidRequestError(problems.sort((one, other) => one.line - other.line));
}

/** JSON Lines (jsonlines.org); blank lines are skipped. */
function* parseJsonLines(text: string, report: Report): Generator<Line> {
  // JSON itself would take the last one.
  const onDuplicateKey = ({ key }: { readonly key: string }): never => {
    throw new SyntaxError(`${quote(key)} is given twice`);
  };
  for (const [index, json] of text.split('\n').entries()) {
    if (json.trim() === '') continue;
    try {
      const value: unknown = parseJson(json, undefined, { parseNumber: Number, onDuplicateKey });
      if (!isRecord(value)) throw new SyntaxError(`it is ${typeName(value)}`);
      yield [index + 1, value];
    } catch (error) {
      const isTooDeep = error instanceof RangeError;
      if (!isTooDeep && !(error instanceof SyntaxError)) throw error;
      const why = isTooDeep ? 'it is nested too deep' : error.message;
      report(index + 1, `is not a JSON object (${why}); JSON Lines has one whole object a line`);
    }
  }
}

/**
 * CSV (RFC 4180), whose first record names the columns. Empty records are skipped. After a misplaced quote nobody can tell where
 * the next record begins, so the rest is not read.
 */
function* parseCsvLines(text: string, report: Report): Generator<Line> {
  const records: (readonly [line: number, cells: readonly string[]])[] = [];
  let line = 1;
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
    report(
      line,
      `is not CSV (${what}); put a cell that has a quote in quotes, and double each quote in it. The rest was not read`,
    );
  }
  const [[first, names] = [1, COLUMNS], ...dataRecords] = records;
  const fields = names.map(findField);
  const invalidName = names.find((_, index) => !fields[index] || fields.indexOf(fields[index]) < index);
  // Without names of columns the other records can't be checked.
  if (invalidName !== undefined) {
    const words = `must name the columns, separated by commas; ${unknownFieldText(invalidName)}`;
    report(
      first,
      findField(invalidName) ? `the column ${invalidName} gives what an earlier column gives` : words,
    );
    return;
  }
  for (const [begins, cells] of dataRecords) {
    // An empty cell gives nothing, and other cells are taken as they are, white space included.
    const given = fields.map((field, index) => [
      field,
      field && cells[index] ? parseFieldValue(field, cells[index]) : null,
    ]);
    const words = `has ${cells.length} cells, and the first line names ${names.length} columns; put a cell with a comma, a quote or a line break in quotes`;
    if (cells.length === names.length) yield [begins, Object.fromEntries(given)];
    else report(begins, words);
  }
}

/** Null stands for a field that is not given. */
function readFields(given: JsonObject, line: number, report: Report) {
  const fields = new Map<RequestField, unknown>();
  const flat = Object.entries(given).flatMap(([name, value]): [string, unknown][] => {
    const inner = name === 'polling' ? (value ?? {}) : null;
    if (!isRecord(inner)) return [[name, value]];
    return Object.entries(inner).map(([option, each]) => [`polling.${option}`, each]);
  });
  for (const [name, value] of flat) {
    const field = findField(name);
    if (name === 'polling') report(line, `polling: must be an object, not ${typeName(value)}`);
    else if (field === undefined) report(line, unknownFieldText(name));
    else if (value !== null && fields.has(field))
      report(line, `${COLUMN_BY_FIELD[field]} is given twice; give it once`);
    else if (value !== null) fields.set(field, value);
  }
  return fields;
}

function unknownFieldText(name: string): string {
  return `${quote(name)} is not a field here; the fields are ${COLUMNS.join(', ')}`;
}

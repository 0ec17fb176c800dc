import type { Command } from 'commander';
import { CsvError, parse } from 'csv-parse/sync';
import { parse as parseJson } from 'lossless-json';
import { InvalidRequestError, type Problem } from '../../entries/client';
import { checkItems, CONCURRENCY, MAX_BATCH_ITEMS } from '../../batch/items';
import { invalidFieldError } from '../../client/errors';
import { isRecord, itemPlace, type JsonObject, problemText, typeName } from '../../contract/checks';
import { type RequestField, buildRequest } from '../../contract/request';
import { quote } from '../../contract/text';
import { explainCells, explainCsvForm } from './csv-form';
import {
  addLineFlags,
  FIELDS,
  type RequestFlags,
  toNumberOrText,
  readPrompt,
  readText,
  requestFromFlags,
  parseFieldValue,
  splitFieldName,
} from './request-flags';

/**
 * Adds the flags for the settings of a batch's run.
 *
 * @param defaultOf returns the text after `default:` in the help. Its argument is the default of a new batch.
 */
export function addRunFlags(command: Command, defaultOf: (value: string) => string): Command {
  const { minimum, maximum, default: concurrency } = CONCURRENCY;
  return command
    .option(
      '--concurrency <n>',
      `maximum number of follow-ups of a batch that run at the same time, ${minimum} to ${maximum} ` +
        `(default: ${defaultOf(String(concurrency))})`,
      toNumberOrText,
    )
    .option(
      '--max-failures <n|p%>',
      'maximum number or percentage of failed items; if more items fail, no further item starts, and the batch fails ' +
        `(default: ${defaultOf('unlimited')})`,
      parseMaxFailures,
    );
}

/** The options for a file with many requests. */
export interface FileFlags extends RequestFlags {
  readonly allowDuplicates?: boolean;
}

export function addFileFlags(command: Command): Command {
  const help = 'send a message several times if several lines have the same project, job and prompt';
  return addLineFlags(command.option('--allow-duplicates', help));
}

/** Parses the value without checking it. */
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

/** The maximum size of the input, which is in memory together with its items. 100,000 items of 2 KiB have 200 MiB. */
const MAX_FILE_BYTES = 256 * 1_024 * 1_024;

/** A line of the input with its number, which counts from 1, and its fields. */
type Line = readonly [line: number, given: JsonObject];
type Report = (line: number, text: string, earlierLine?: number) => void;

/**
 * Reads and checks the input of a batch from a file or, for `-`, from stdin.
 *
 * @param flags the fields for lines that do not set them
 * @param check checks all requests together; the item numbers of its problems become line numbers
 * @throws InvalidRequestError with the problems of the flags, of the file, or of its lines
 */
export async function readBatchFile<Checked>(
  stdin: AsyncIterable<Uint8Array>,
  file: string,
  flags: RequestFlags,
  check: (requests: readonly JsonObject[]) => Promise<Checked>,
): Promise<Checked> {
  if (file === '-' && flags.promptFile === '-')
    throw invalidFieldError('--prompt-file', 'stdin can be read only once, and the items are read from it');
  const defaults = requestFromFlags({ ...flags, prompt: await readPrompt(flags, stdin) });
  // The flags are checked alone, so that a problem with a flag is not reported for every line.
  const line = { projectId: 'p', jobId: 'j', prompt: 'm', ...defaults, requestId: 'r' };
  const { problems: flagProblems } = checkItems([line], 'b');
  if (flagProblems.length > 0)
    throw new InvalidRequestError(flagProblems.map(({ field, text }) => ({ field, text })));
  const text = (await readText(file, stdin, 'items', MAX_FILE_BYTES)).replace(/^\ufeff/, '');
  const lines: number[] = [];
  const requests: JsonObject[] = [];
  const problems: (Problem & { readonly line: number })[] = [];
  const report: Report = (line, text, earlierLine) => {
    const field = itemPlace('line', line, earlierLine);
    if (problems.length < MAX_BATCH_ITEMS) problems.push({ line, field, text });
  };
  const defaultFields = readFields(defaults, 0, report);
  // CSV can't start with a brace or a bracket, because no column's name does.
  const read = /^\s*[[{]/.test(text) ? parseJsonLines : parseCsvLines;
  for (const [line, given] of read(text, report)) {
    lines.push(line);
    requests.push(buildRequest([...defaultFields, ...readFields(given, line, report)]));
    // The rest is not read, because the input already has too many items.
    if (requests.length > MAX_BATCH_ITEMS) break;
  }
  try {
    const checked = await check(requests);
    if (problems.length === 0) return checked;
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    const toLine = (item = 0) => lines[item - 1];
    for (const { item, earlierItem, ...problem } of error.problems) {
      const line = toLine(item);
      if (line !== undefined) report(line, problemText(problem, COLUMN_BY_FIELD), toLine(earlierItem));
      // If no line can be read, the problem that the batch has no items is omitted.
      else if (requests.length > 0 || problems.length === 0) problems.push({ line: 0, ...problem });
    }
  }
  throw new InvalidRequestError(problems.sort((one, other) => one.line - other.line));
}

/** Parses JSON Lines (jsonlines.org). Blank lines are skipped. */
function* parseJsonLines(text: string, report: Report): Generator<Line> {
  // JSON.parse would use the last value.
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
      if (!(error instanceof RangeError || error instanceof SyntaxError)) throw error;
      // The parser throws a RangeError if the stack is full.
      const reason = error instanceof SyntaxError ? error.message : 'it is nested too deeply';
      report(index + 1, `is not a JSON object (${reason}); write one complete object per line`);
    }
  }
}

type CsvRecord = readonly [line: number, cells: readonly string[]];

/**
 * Parses CSV (RFC 4180). The first record names the columns, and empty records are skipped. The rest after a misplaced quote is not
 * read, because the start of the next record is unknown.
 */
function* parseCsvLines(text: string, report: Report): Generator<Line> {
  const form = explainCsvForm(text, (name) => findField(name) !== undefined);
  if (form !== undefined) {
    report(text.slice(0, text.search(/\S/)).split('\n').length, form);
    return;
  }
  const [[first, names] = [1, COLUMNS], ...records] = parseCsvRecords(text, report);
  const problem = headerProblem(names);
  // Without the names of the columns, the other records can't be checked.
  if (problem !== undefined) {
    report(first, problem);
    return;
  }
  const fields = names.map(findField);
  for (const [firstLine, cells] of records) {
    // An empty cell does not set its field. Any other cell is used unchanged, with its white space.
    const given = fields.map((field, index) => [
      field,
      field && cells[index] ? parseFieldValue(field, cells[index]) : null,
    ]);
    if (cells.length === names.length) yield [firstLine, Object.fromEntries(given)];
    else report(firstLine, explainCells(cells, names.length));
  }
}

function parseCsvRecords(text: string, report: Report): CsvRecord[] {
  const records: CsvRecord[] = [];
  let line = 1;
  const onRecord = (cells: readonly string[]): null => {
    if (cells.some((cell) => cell.trim() !== '')) records.push([line, cells]);
    // The parser counts a CRLF within quotes as two lines, so the lines are counted here. Cells keep their line breaks.
    line += cells.join('').split('\n').length;
    return null;
  };
  try {
    // In addition to the maximum, one record names the columns, and one record shows that there are too many.
    const options = { relax_column_count: true, to: MAX_BATCH_ITEMS + 2, record_delimiter: ['\r\n', '\n'] };
    parse(text, { ...options, on_record: onRecord });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const reason = error.code.replace(/^CSV_/, '').replaceAll('_', ' ').toLowerCase();
    const fix = 'put every cell that contains a " between two ", and write each " inside as ""';
    report(line, `is not CSV (${reason}); ${fix}. Later lines were not read`);
  }
  return records;
}

/** Returns the problem of the record that names the columns, if there is one. */
function headerProblem(names: readonly string[]): string | undefined {
  const fields = names.map(findField);
  const index = fields.findIndex((field, position) => !field || fields.indexOf(field) < position);
  const name = names[index];
  if (name === undefined) return undefined;
  if (fields[index]) return `the column ${name} duplicates an earlier column`;
  return name.trim() === ''
    ? `column ${index + 1} has no name; name the column, or remove it if its cells are empty`
    : `must name the columns, separated by commas; ${unknownFieldText(name)}`;
}

/** Reads the fields of a line. Null means that the field is not set. */
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
      report(line, `${COLUMN_BY_FIELD[field]} is set twice; set it once`);
    else if (value !== null) fields.set(field, value);
  }
  return fields;
}

function unknownFieldText(name: string): string {
  return `${quote(name)} is not a valid field; the valid fields are ${COLUMNS.join(', ')}`;
}

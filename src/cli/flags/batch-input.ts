import path from 'node:path';
import type { Command } from 'commander';
import { CsvError, parse } from 'csv-parse/sync';
import {
  checkBatch,
  type CheckedBatch,
  InvalidRequestError,
  type NewBatchOptions,
  type Problem,
  type Tolerance,
} from '../../client';
import { CONCURRENCY, MAX_BATCH_ITEMS } from '../../core/batch/batch';
import { isRecord, type JsonObject, problemText, typeName } from '../../core/checks';
import { fieldOf, type RequestField, requestWith } from '../../core/request';
import { quote } from '../../core/text';
import {
  FIELDS,
  invalid,
  type LineFlags,
  numberOr,
  readPrompt,
  readText,
  requestOfFlags,
  valueOf,
  wordsOf,
} from './request-flags';

/** Adds the flags that say how a batch runs, for `batch` and `schedule`. */
export function addRunFlags(command: Command): Command {
  const { minimum, maximum, default: usual } = CONCURRENCY;
  const places = `${minimum} to ${maximum} (default: ${usual})`;
  return command
    .option('--concurrency <n>', `how many follow-ups of a batch are open at a time, ${places}`, numberOr)
    .option(
      '--tolerate <n|p%>',
      'if more items than this number, or this share of all, have failed, the batch starts no further item and fails (default: no limit)',
      toleranceOf,
    );
}

/** What the flags of {@link addRunFlags} give, unchecked. */
export interface RunFlags {
  readonly concurrency?: number;
  readonly tolerate?: Tolerance;
}

/** Any other text as it is, so that the checker can quote it. */
export function toleranceOf(text: string): Tolerance {
  const [, number, percent] = /^(\d+(?:\.\d+)?)(%?)$/.exec(text) ?? [];
  if (number === undefined) return text as unknown as Tolerance;
  return percent === '%' ? { percent: Number(number) } : { items: Number(number) };
}

const COLUMN_OF_FIELD = Object.fromEntries(
  FIELDS.map((field) => [field, wordsOf(field).join('_')]),
) as Readonly<Record<RequestField, string>>;

export const COLUMNS = Object.values(COLUMN_OF_FIELD);

/** A field goes by the name of its column, or by its name in the request's JSON. */
const FIELD_OF_NAME = new Map<string, RequestField>(
  FIELDS.flatMap((field) => [
    [COLUMN_OF_FIELD[field], field],
    [field, field],
  ]),
);

/** The whole input is held in memory, with its items; 100,000 items of 2 KiB are 200 MiB. */
const MAX_INPUT_BYTES = 256 * 1_024 * 1_024;

/** What the readers below tell of the lines of a batch, which count from 1. */
interface LineReader {
  readonly take: (line: number, given: JsonObject) => void;
  readonly report: (line: number, problem: string) => void;
}

/**
 * Reads and checks the whole input of a batch: JSON Lines or CSV. Nothing is started.
 *
 * @param file a path, or `-` for stdin
 * @param flags `--format`, and the fields of lines without them. A request id is not taken from here: it names one follow-up.
 * @throws InvalidRequestError when the file can't be read or the flags are invalid; else with every line that is wrong, and why
 */
export async function readBatch(
  stdin: AsyncIterable<Uint8Array>,
  file: string,
  flags: LineFlags,
  options: NewBatchOptions = {},
): Promise<CheckedBatch> {
  if (file === '-' && flags.promptFile === '-')
    throw invalid('--prompt-file', 'stdin can be read only once, and the items are read from it');
  const defaults = requestOfFlags(flags, await readPrompt(flags, stdin), undefined);
  await checkDefaults(defaults);
  const text = (await readText(file, stdin, 'items', MAX_INPUT_BYTES)).replace(/^\ufeff/, '');
  const lines: number[] = [];
  const requests: JsonObject[] = [];
  const problems: (Problem & { readonly line: number })[] = [];
  const report = (line: number, words: string): void => {
    if (problems.length < MAX_BATCH_ITEMS) problems.push({ line, field: `line ${line}`, text: words });
  };
  const take = (line: number, given: JsonObject): void => {
    const fields = fieldsOfLine(given, (problem) => {
      report(line, problem);
    });
    lines.push(line);
    requests.push(requestWith(FIELDS.map((field) => [field, fields.get(field) ?? fieldOf(defaults, field)])));
  };
  const read = formatOf(file, flags.format, text) === 'csv' ? readCsv : readJsonLines;
  read(text, { take, report });
  try {
    const batch = await checkBatch(requests, options);
    if (problems.length === 0) return batch;
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    for (const { item, ...problem } of error.problems) {
      const line = item === undefined ? 0 : (lines[item - 1] ?? 0);
      if (line > 0) report(line, problemText(problem, COLUMN_OF_FIELD));
      // Where no line can be read, it is no news that there are no items.
      else if (requests.length > 0 || problems.length === 0) problems.push({ line, ...problem });
    }
  }
  throw new InvalidRequestError(problems.sort((one, other) => one.line - other.line));
}

/** Checks the defaults by themselves, so that a problem with them is not reported for every line. */
async function checkDefaults(defaults: JsonObject): Promise<void> {
  try {
    await checkBatch([{ projectId: 'p', jobId: 'j', prompt: 'm', ...defaults, requestId: 'r' }]);
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    throw new InvalidRequestError(error.problems.map(({ field, text }) => ({ field, text })));
  }
}

/** By `--format`, by the file's name, or by its content: JSON begins with a brace or a bracket, and no column's name does. */
function formatOf(file: string, asked: string | undefined, text: string): string {
  if (asked !== undefined) return asked;
  const extension = path.extname(file).slice(1).toLowerCase();
  if (extension === 'csv') return extension;
  return /^(jsonl|ndjson)$/.test(extension) || /^\s*[[{]/.test(text) ? 'jsonl' : 'csv';
}

/** Reads JSON Lines (jsonlines.org): one object a line; blank lines are skipped. */
function readJsonLines(text: string, { take, report }: LineReader): void {
  for (const [index, json] of text.split('\n').entries()) {
    if (json.trim() === '') continue;
    const line = index + 1;
    try {
      const value: unknown = JSON.parse(json);
      if (isRecord(value)) take(line, value);
      else report(line, `must be one JSON object, not ${typeName(value)}; JSON Lines has one object a line`);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      report(line, `is not JSON (${error.message}); JSON Lines has one whole object a line`);
    }
  }
}

/**
 * Reads CSV (RFC 4180). Its first record names the columns. An empty cell gives nothing, and other cells are taken as they
 * are, white space included. Empty records are skipped, as spreadsheets leave them at the end.
 *
 * After a misplaced quote nobody can tell where the next record begins, so the rest is not read.
 */
function readCsv(text: string, { take, report }: LineReader): void {
  let line = 1;
  let columns: readonly string[] | undefined;
  const readRecord = (begins: number, cells: readonly string[], names: readonly string[]): void => {
    if (cells.length === names.length) {
      const given = names.flatMap((name, index) => {
        const field = FIELD_OF_NAME.get(name);
        const cell = cells[index] ?? '';
        return field === undefined || cell === '' ? [] : [[name, valueOf(field, cell)] as const];
      });
      take(begins, Object.fromEntries(given));
      return;
    }
    const counts = `has ${cells.length} cells, and the first line names ${names.length} columns`;
    report(begins, `${counts}; put a cell with a comma, a quote or a line break in quotes`);
  };
  try {
    parse(text, {
      relax_column_count: true,
      record_delimiter: ['\r\n', '\n'],
      on_record: (record: readonly string[]) => {
        const begins = line;
        // The parser's own count takes a CRLF within quotes for two lines. Cells keep their line breaks.
        line += record.reduce((sum, cell) => sum + cell.split('\n').length - 1, 1);
        if (record.every((cell) => cell.trim() === '')) return null;
        if (columns === undefined) columns = readHeader(begins, record, report);
        else if (columns.length > 0) readRecord(begins, record, columns);
        return null;
      },
    });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const what = error.code.replace(/^CSV_/, '').replaceAll('_', ' ').toLowerCase();
    const right = 'put a cell that has a quote in quotes, and double each quote in it. The rest was not read';
    report(line, `is not CSV (${what}); ${right}`);
  }
}

/** The columns; none if the first record names none, because the other records can't be checked then. */
function readHeader(line: number, names: readonly string[], report: LineReader['report']): readonly string[] {
  if (!names.some((name) => FIELD_OF_NAME.has(name))) {
    const what = `${quote(names.join())} has none of them; columns are separated by commas`;
    report(line, `must name the columns (${COLUMNS.join(', ')}); ${what}`);
    return [];
  }
  for (const [index, name] of names.entries()) {
    if (!FIELD_OF_NAME.has(name)) report(line, unknownName(name));
    else if (names.indexOf(name) < index) report(line, `the column ${name} is named twice`);
  }
  return names;
}

/** The fields that a line gives. Null stands for a field that is not given. */
function fieldsOfLine(object: JsonObject, report: (problem: string) => void): Map<RequestField, unknown> {
  const fields = new Map<RequestField, unknown>();
  const { polling, ...others } = object;
  const names = Object.entries(others);
  if (isRecord(polling))
    for (const [name, value] of Object.entries(polling)) names.push([`polling.${name}`, value]);
  else if (polling !== undefined && polling !== null)
    report(`polling: must be an object, not ${typeName(polling)}`);
  for (const [name, value] of names) {
    const field = FIELD_OF_NAME.get(name);
    if (field === undefined) report(unknownName(name));
    else if (value === null) continue;
    else if (fields.has(field)) report(`${COLUMN_OF_FIELD[field]} is given twice; give it once`);
    else fields.set(field, value);
  }
  return fields;
}

function unknownName(name: string): string {
  return `${quote(name)} is not a field here; the fields are ${COLUMNS.join(', ')}`;
}

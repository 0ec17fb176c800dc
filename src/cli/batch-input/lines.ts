import { pipeline } from 'node:stream/promises';
import { CsvError, parse } from 'csv-parse';
import type { ProblemList } from '../../client/batch/items';
import { isRecord, type JsonObject, typeName } from '../../core/json';
import type { RequestField } from '../../core/request-options';
import { quote } from '../../core/text';
import { FIELDS, valueOf, wordsOf } from '../flags/request-flags';
import { type LineBlock, MAX_LINE_BYTES } from './line-blocks';

/**
 * Reads the items of a CSV file (RFC 4180). Its first record names the columns. An empty cell gives nothing, and other
 * cells are taken as they are, white space included. Empty records are skipped, as spreadsheets leave them at the end.
 *
 * After a misplaced quote nobody can tell where the next record begins, so the rest is not read.
 */
export async function readCsv(
  blocks: AsyncIterable<LineBlock>,
  problems: ProblemList,
  take: (line: number, fields: LineFields) => void,
): Promise<void> {
  let line = 1;
  let columns: readonly Column[] | undefined;
  const parser = parse({
    relax_column_count: true,
    record_delimiter: ['\r\n', '\n'],
    max_record_size: MAX_LINE_BYTES,
    // Called in order, also for the records right before an error, which the stream would drop.
    on_record: (record: readonly string[]) => {
      const begins = line;
      // The parser's own count takes a CRLF within quotes for two lines. Cells keep their line breaks.
      line += 1 + record.reduce((sum, cell) => sum + countLineFeeds(cell), 0);
      if (record.every((cell) => cell.trim() === '')) return null;
      if (columns === undefined) columns = readHeader(begins, record, problems);
      else if (columns.length > 0) readRecord(begins, record, columns, problems, take);
      return null;
    },
  });
  async function* bytes(): AsyncGenerator<Buffer, void, undefined> {
    let isFirst = true;
    for await (const block of blocks) {
      if (isFirst) line = block.firstLine;
      isFirst = false;
      yield block.bytes;
    }
  }
  parser.resume();
  try {
    await pipeline(bytes, parser);
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    problems.add(line, csvProblem(error));
  }
}

/** A column's name and its field; undefined if there is no such field, which was reported. */
interface Column {
  readonly name: string;
  readonly field: RequestField | undefined;
}

/** The columns; none if the first record names none, because the other records can't be checked then. */
function readHeader(line: number, names: readonly string[], problems: ProblemList): Column[] {
  const columns = names.map((name) => ({ name, field: fieldOfName(name) }));
  if (columns.every(({ field }) => field === undefined)) {
    const separator = /[;\t|]/.exec(names.join());
    const hint =
      separator === null ? '' : `; columns are separated by commas, not by ${JSON.stringify(separator[0])}`;
    problems.add(
      line,
      `must name the columns (${COLUMNS.join(', ')}); ${quote(names[0])} is not one of them${hint}`,
    );
    return [];
  }
  for (const [index, { name, field }] of columns.entries()) {
    if (field === undefined) problems.add(line, unknownName(name, 'column'));
    else if (names.indexOf(name) < index) problems.add(line, `the column ${name} is named twice`);
  }
  return columns;
}

function readRecord(
  line: number,
  cells: readonly string[],
  columns: readonly Column[],
  problems: ProblemList,
  take: (line: number, fields: LineFields) => void,
): void {
  if (cells.length !== columns.length) {
    problems.add(
      line,
      `has ${cells.length} cells, and the first line names ${columns.length} columns; put a cell with a comma, a quote or a line break in quotes`,
    );
    return;
  }
  const given = columns.flatMap(({ name, field }, index): [string, unknown][] => {
    const cell = cells[index] ?? '';
    return field === undefined || cell === '' ? [] : [[name, valueOf(field, cell)]];
  });
  const report = (problem: string): void => {
    problems.add(line, problem);
  };
  take(line, fieldsOfLine(Object.fromEntries(given), report));
}

function csvProblem(error: CsvError): string {
  const reason = QUOTE_PROBLEMS[error.code];
  if (reason === undefined) return error.message;
  return `${reason}; put a cell that has a quote in quotes, and double each quote in it. The rest was not read`;
}

const QUOTE_PROBLEMS: Readonly<Record<string, string>> = {
  INVALID_OPENING_QUOTE: 'a cell has a quote but does not begin with one',
  CSV_INVALID_CLOSING_QUOTE: 'a cell has text after its closing quote',
  CSV_QUOTE_NOT_CLOSED: 'a quote is not closed',
  CSV_MAX_RECORD_SIZE: `its record is longer than ${MAX_LINE_BYTES / 2 ** 20} MiB, the maximum of an item; perhaps a quote is not closed`,
};

function countLineFeeds(text: string): number {
  return text.split('\n').length - 1;
}

/** Reads the items of JSON Lines (jsonlines.org): one object a line; blank lines are skipped. */
export function readJsonLines(
  { firstLine, bytes }: LineBlock,
  problems: ProblemList,
  take: (line: number, fields: LineFields) => void,
): void {
  for (const [index, text] of bytes.toString().split('\n').entries()) {
    if (text.trim() === '') continue;
    const line = firstLine + index;
    const value = parseLine(text);
    if (value instanceof SyntaxError) {
      problems.add(line, `is not JSON (${value.message}); JSON Lines has one whole object a line`);
    } else if (!isRecord(value)) {
      problems.add(line, `must be one JSON object, not ${typeName(value)}; JSON Lines has one object a line`);
    } else {
      take(
        line,
        fieldsOfLine(value, (problem) => {
          problems.add(line, problem);
        }),
      );
    }
  }
}

function parseLine(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    return error;
  }
}

/** The fields of a request, and what a column of each is called. */
export const COLUMN_OF_FIELD = Object.fromEntries(
  FIELDS.map((field) => [field, wordsOf(field).join('_')]),
) as Readonly<Record<RequestField, string>>;

export const COLUMNS = Object.values(COLUMN_OF_FIELD);

/** Every name of a field: its column, and its name in the request's JSON. */
const FIELD_OF_NAME = new Map<string, RequestField>([
  ...FIELDS.map((field): [string, RequestField] => [COLUMN_OF_FIELD[field], field]),
  ...FIELDS.map((field): [string, RequestField] => [field, field]),
]);

/** The fields of a line: each with its value and the name that the line uses for it. */
export type LineFields = ReadonlyMap<RequestField, { readonly name: string; readonly value: unknown }>;

function fieldOfName(name: string): RequestField | undefined {
  return FIELD_OF_NAME.get(name);
}

function unknownName(name: string, kind: 'column' | 'field'): string {
  return `${quote(name)} is not a ${kind} here; the ${kind}s are ${COLUMNS.join(', ')}`;
}

/**
 * The fields that a line gives. Null stands for a field that is not given.
 *
 * @param report takes each problem: a name that is not a field, or two names for the same
 */
function fieldsOfLine(line: JsonObject, report: (problem: string) => void): LineFields {
  const fields = new Map<RequestField, { name: string; value: unknown }>();
  const take = (name: string, value: unknown): void => {
    const field = fieldOfName(name);
    const other = field && fields.get(field);
    if (field === undefined) report(unknownName(name, 'field'));
    else if (value === null || value === undefined) return;
    else if (other !== undefined) report(`${other.name} and ${name} are the same field; give one of the two`);
    else fields.set(field, { name, value });
  };
  for (const [name, value] of Object.entries(line)) {
    if (name !== 'polling') take(name, value);
    else if (isRecord(value))
      for (const [inner, item] of Object.entries(value)) take(`polling.${inner}`, item);
    else if (value !== null) report(`polling: must be an object, not ${typeName(value)}`);
  }
  return fields;
}

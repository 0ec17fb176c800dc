import { pipeline } from 'node:stream/promises';
import { CsvError, parse } from 'csv-parse';
import type { ProblemList } from '../../client/batch/problem-list';
import type { RequestField } from '../../contract/request-options';
import { quote } from '../../contract/text';
import { valueOf } from '../request-flags';
import { COLUMNS, fieldOfName, fieldsOfLine, type LineFields, unknownName } from './fields';
import { type LineBlock, MAX_LINE_BYTES } from './line-blocks';

/**
 * Takes the items of a CSV file (RFC 4180): its first record names the columns, an empty cell gives nothing, and cells
 * are as they are, blanks included. Records without any content are skipped, as spreadsheets leave them at the end.
 *
 * After a quote that is out of place nobody can tell where the next record begins: what follows is not read.
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
    problems.add(line, wordsOf(error));
  }
}

/** A column's name and the field that it is; undefined where there is no such field, which has been said. */
interface Column {
  readonly name: string;
  readonly field: RequestField | undefined;
}

/** The columns; none where the first record names none, since nothing can be said of the others then. */
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
    else if (names.indexOf(name) < index) problems.add(line, `the column ${name} is there twice`);
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
      `has ${cells.length} cells, and the first line names ${columns.length} columns; a cell with a comma, a quote or a line break stands in quotes`,
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

function wordsOf(error: CsvError): string {
  const reason = QUOTE_PROBLEMS[error.code];
  if (reason === undefined) return error.message;
  return `${reason}; a cell with a quote in it stands in quotes as a whole, and each quote in it twice. What follows was not read`;
}

const QUOTE_PROBLEMS: Readonly<Record<string, string>> = {
  INVALID_OPENING_QUOTE: 'there is a quote in a cell that does not begin with one',
  CSV_INVALID_CLOSING_QUOTE: 'there is text in a cell after the quote that closes it',
  CSV_QUOTE_NOT_CLOSED: 'there is a quote that nothing closes',
  CSV_MAX_RECORD_SIZE: `its record is longer than ${MAX_LINE_BYTES / 2 ** 20} MiB, and no item is; a quote may not be closed`,
};

function countLineFeeds(text: string): number {
  return text.split('\n').length - 1;
}

import { pluralize } from '../../contract/text';

/*
 * A spreadsheet program often saves CSV in a form that this program does not read: with semicolons, with whole lines in quotes, with
 * empty columns, or in another encoding. The functions of this file name such a form and the fix.
 */

const SEPARATORS: readonly (readonly [separator: string, name: string])[] = [
  [';', 'semicolons, as a German Excel does'],
  ['\t', 'tabs, as Excel does in the format "Text"'],
];

const SAVE_WITH_COMMAS =
  'save the file with commas. In Excel, first set the list separator of Windows (Region, Additional settings) to a comma; in ' +
  'LibreOffice, choose the field delimiter when you save';

const WHOLE_LINE =
  'the whole line is one cell in quotes, which happens if Excel is set to semicolons, and opens and saves a file with commas; use ' +
  'the original file, or save it with another program';

/**
 * Explains the form of a CSV file whose first line does not name the columns with commas between them.
 *
 * @param isColumn returns whether a text is the name of a column
 * @returns the explanation for the first line; undefined if the form is not known
 */
export function explainCsvForm(text: string, isColumn: (name: string) => boolean): string | undefined {
  const lines = text.trimStart();
  if (!lines.includes('\n') && lines.trim().includes('\r'))
    return 'ends with a carriage return and no line feed, as in the Excel format "CSV (Macintosh)"; save the file as "CSV UTF-8"';
  const [line = ''] = lines.split(/\r?\n/, 1);
  if (/^sep=.$/i.test(line))
    return `is ${JSON.stringify(line)}, which only Excel reads; remove the line, and ${SAVE_WITH_COMMAS}`;
  for (const [separator, name] of SEPARATORS) {
    const cells = line.split(separator).map(withoutQuotes);
    if (cells.length === 1 || !cells.some(isColumn)) continue;
    const last = cells.at(-1) === '' ? '. Also remove the last column, which has no name' : '';
    return `separates the columns with ${name}; ${SAVE_WITH_COMMAS}${last}`;
  }
  const isOneCell = /^"[^"]*"$/.test(line) && line.includes(',');
  return isOneCell && withoutQuotes(line).split(',').some(isColumn) ? WHOLE_LINE : undefined;
}

function withoutQuotes(cell: string): string {
  return cell.trim().replace(/^"(.*)"$/, '$1');
}

/** Explains the problem of a line whose number of cells is not the number of columns. */
export function explainCells(cells: readonly string[], columns: number): string {
  const found = `has ${pluralize(cells.length, 'cell')}, but the first line names ${pluralize(columns, 'column')}`;
  const [only = ''] = cells;
  if (cells.length === 1 && only.split(',').length >= columns) return `${found}: ${WHOLE_LINE}`;
  if (cells.length === 1 && only.split(';').length >= columns)
    return `${found}: the cells are separated with semicolons; ${SAVE_WITH_COMMAS}`;
  if (cells.length > columns && cells.slice(columns).every((cell) => cell.trim() === ''))
    return `${found}: the cells at the end are empty; remove the empty columns, or the commas at the end of the line`;
  return `${found}; put a cell with a comma, a quote or a line break in quotes`;
}

/** The bytes that have no character in Windows-1252. */
const NOT_WINDOWS_1252 = [0x81, 0x8d, 0x8f, 0x90, 0x9d];

/** Explains the encoding of a text that is not UTF-8. The explanation continues a sentence whose subject is the text. */
export function explainEncoding(bytes: Buffer): string {
  const mark = bytes.subarray(0, 2).toString('hex');
  const save = 'save it as UTF-8 (in Excel, as "CSV UTF-8")';
  if (mark === 'fffe' || mark === 'feff')
    return `is UTF-16; ${save}, or convert it with iconv -f UTF-16 -t UTF-8`;
  // The first replacement character shows the line with the invalid bytes.
  const text = bytes.toString();
  const line = text.slice(0, text.indexOf('\ufffd')).split('\n').length;
  const found = `is not UTF-8 (line ${line})`;
  if (bytes.includes(0) || NOT_WINDOWS_1252.some((byte) => bytes.includes(byte))) return `${found}; ${save}`;
  return `${found}, but probably Windows-1252, as Excel writes it in the format "CSV"; ${save}, or convert it with iconv -f WINDOWS-1252 -t UTF-8`;
}

import path from 'node:path';
import { UsageError } from '../usage-error';
import type { LineBlock } from './line-blocks';

export const FORMATS = ['jsonl', 'csv'] as const;
export type Format = (typeof FORMATS)[number];

const EXTENSIONS: Readonly<Record<string, Format>> = { '.jsonl': 'jsonl', '.ndjson': 'jsonl', '.csv': 'csv' };

/**
 * The format that was asked for, or that the file's name tells; undefined where its content must tell.
 *
 * @throws UsageError when `--format` is given and is none
 */
export function formatByName(file: string, asked: string | undefined): Format | undefined {
  if (asked === undefined) return EXTENSIONS[path.extname(file).toLowerCase()];
  const format = FORMATS.find((known) => known === asked);
  if (format === undefined) {
    throw new UsageError([`--format: must be ${FORMATS.join(' or ')}; it is ${JSON.stringify(asked)}`]);
  }
  return format;
}

/** JSON begins with a brace or a bracket, which no column's name does; undefined while there are only blanks. */
export function formatByContent({ bytes }: LineBlock): Format | undefined {
  const first = /\S/.exec(bytes.toString())?.[0];
  if (first === undefined) return undefined;
  return first === '{' || first === '[' ? 'jsonl' : 'csv';
}

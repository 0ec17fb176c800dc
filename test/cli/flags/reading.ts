import { Readable } from 'node:stream';
import { readBatch } from '../../../src/cli/flags/batch-input';
import { FLAG_OF_FIELD, type LineFlags } from '../../../src/cli/flags/request-flags';
import { checkBatch, type CheckedBatch } from '../../../src/client/batch/check';
import { InvalidRequestError } from '../../../src/client/errors';
import { problemText } from '../../../src/core/checks';
import type { FollowUpRequest } from '../../../src/core/request';

export interface Options {
  readonly file?: string;
  readonly stdin?: AsyncIterable<Uint8Array>;
  readonly flags?: LineFlags;
}

/** Reads a batch from stdin, which hands over the input in pieces of so many bytes. */
export function read(
  input: string | Uint8Array,
  { file = '-', stdin, flags = {} }: Options = {},
  pieceBytes = 64 * 1_024,
): Promise<CheckedBatch> {
  const bytes = Buffer.from(input);
  const pieces = Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, index) =>
    bytes.subarray(index * pieceBytes, (index + 1) * pieceBytes),
  );
  return readBatch(stdin ?? Readable.from(pieces), file, flags, (requests) => checkBatch(requests));
}

/** The requests without the cadence that every item of a batch gets. */
export async function requestsOf(
  input: string | Uint8Array,
  options: Options = {},
  pieceBytes?: number,
): Promise<FollowUpRequest[]> {
  const { items } = await read(input, options, pieceBytes);
  return items.map(({ request: { polling, ...request } }) => {
    const { initial, ...cadence } = polling ?? {};
    if (initial !== '30s') return { ...request, polling: polling ?? {} };
    return Object.keys(cadence).length > 0 ? { ...request, polling: cadence } : request;
  });
}

export async function problemsOf(
  input: string | Uint8Array,
  options: Options = {},
  pieceBytes?: number,
): Promise<readonly string[]> {
  const error: unknown = await read(input, options, pieceBytes).catch((thrown: unknown) => thrown);
  if (error instanceof InvalidRequestError)
    return error.problems.map((problem) => problemText(problem, FLAG_OF_FIELD));
  return error instanceof Error ? [`unexpected: ${error.message}`] : [];
}

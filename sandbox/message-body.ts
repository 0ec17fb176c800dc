import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { isRecord, typeName } from '../src/core/field-reader';

/** The prompt of a message, or why the service refuses it. */
export type MessageBody =
  { readonly prompt: string } | { readonly status: 400 | 413; readonly problem: string };

/**
 * How many bytes too many are read and thrown away, 64 MiB: a caller that is still sending would lose the answer if
 * the connection were closed upon it.
 */
const DISCARD_BYTES = 64 * 2 ** 20;

/**
 * Reads a request's body to its end.
 *
 * @returns null when it is longer than `limit` bytes.
 * @throws Error when the caller goes away before the end.
 */
export async function readBody(req: IncomingMessage, limit: number): Promise<Buffer | null> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size <= limit) pieces.push(piece);
    else if (size > limit + DISCARD_BYTES) break;
  }
  return size > limit ? null : Buffer.concat(pieces);
}

export function readMessage(
  contentType: string | undefined,
  body: Buffer | null,
  limit: number,
): MessageBody {
  if (body === null) return { status: 413, problem: `the body is larger than ${limit} bytes` };
  const [essence = '', ...parameters] = (contentType ?? '').toLowerCase().split(';');
  if (essence.trim() !== 'application/json') {
    return refuse(`the content type must be application/json; it is ${contentType ?? 'missing'}`);
  }
  const charset = parameters.map((text) => /^\s*charset\s*=\s*"?([^"\s]+)/.exec(text)?.[1]).find(Boolean);
  if (charset !== undefined && charset !== 'utf-8')
    return refuse(`the charset must be utf-8; it is ${charset}`);
  const parsed = parseJson(body);
  if (parsed === undefined) return refuse('the body is not JSON in UTF-8');
  if (!isRecord(parsed.value)) return refuse(`the body must be an object; it is ${typeName(parsed.value)}`);
  const { prompt } = parsed.value;
  if (typeof prompt !== 'string') return refuse(`prompt must be a string; it is ${typeName(prompt)}`);
  return prompt === '' ? refuse('prompt must have at least 1 character') : { prompt };
}

function refuse(problem: string): MessageBody {
  return { status: 400, problem };
}

/** Undefined where the body is no JSON or no UTF-8. */
function parseJson(body: Buffer): { readonly value: unknown } | undefined {
  if (!isUtf8(body)) return undefined;
  try {
    return { value: JSON.parse(body.toString('utf8')) };
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

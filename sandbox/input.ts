import type { IncomingMessage } from 'node:http';
import { z } from 'zod';

/** Thrown for invalid input. The message has every problem with the name of its field. */
export class InputError extends Error {
  override readonly name = 'InputError';
}

/** The maximum size of a body (2 MiB). The largest prompt (256 KiB) fits even if JSON writes each of its bytes as six. */
export const MAX_BODY_BYTES = 2 * 2 ** 20;

/** Parses a duration: a whole number with the unit ms, s, m or h. The result is in milliseconds. */
export const duration = z
  .string()
  .regex(/^\d{1,9}(ms|s|m|h)$/, 'must be a duration such as 500ms, 3s, 2m or 1h')
  .transform((text) => parseInt(text, 10) * { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }[unitFromText(text)]);

function unitFromText(text: string): 'ms' | 's' | 'm' | 'h' {
  return text.replace(/^\d+/, '') as 'ms' | 's' | 'm' | 'h';
}

/**
 * Reads a request's body to its end, even if the body is too large. If the connection were closed earlier, a client that is still sending
 * would not receive the response.
 *
 * @returns null if the body is larger than {@link MAX_BODY_BYTES}
 * @throws Error if the client disconnects before the end
 */
export async function readBody(req: IncomingMessage): Promise<Buffer | null> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size <= MAX_BODY_BYTES) pieces.push(piece);
  }
  return size > MAX_BODY_BYTES ? null : Buffer.concat(pieces);
}

/** Parses JSON. @throws InputError if the text is not JSON, or its bytes are not UTF-8 */
export function parseJson(text: string | Buffer): unknown {
  try {
    const decoded = typeof text === 'string' ? text : new TextDecoder('utf-8', { fatal: true }).decode(text);
    return JSON.parse(decoded);
  } catch (error) {
    throw new InputError('must be JSON in UTF-8', { cause: error });
  }
}

/**
 * Checks a value with a schema.
 *
 * @param at the path of the value, for the names of fields in problems
 * @throws InputError with all problems
 */
export function parseWithSchema<T>(schema: z.ZodType<T>, value: unknown, at: readonly string[] = []): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.map(({ path, message }) => {
    const field = [...at, ...path].join('.');
    return field === '' ? message : `${field}: ${message}`;
  });
  throw new InputError(problems.join('; '));
}

import type { IncomingMessage } from 'node:http';
import { z } from 'zod';

/** Thrown for input from outside that is malformed; the message has every problem, each with the name of its field. */
export class InputError extends Error {
  override readonly name = 'InputError';
}

/** 2 MiB: the largest prompt of a follow-up, 256 KiB, fits even if JSON writes each of its bytes as six. */
export const MAX_BODY_BYTES = 2 * 2 ** 20;

/** Durations are written as in the worker's configuration; the value is milliseconds. */
export const duration = z
  .string()
  .regex(/^\d{1,9}(ms|s|m|h)$/, 'must be a duration such as 500ms, 3s, 2m or 1h')
  .transform((text) => parseInt(text, 10) * { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }[unitFromText(text)]);

function unitFromText(text: string): 'ms' | 's' | 'm' | 'h' {
  return text.replace(/^\d+/, '') as 'ms' | 's' | 'm' | 'h';
}

/**
 * Reads a request's body to its end, also one that is too large: a caller that is still sending would lose the answer
 * if the connection were closed upon it.
 *
 * @returns null when it is larger than {@link MAX_BODY_BYTES}
 * @throws Error when the caller goes away before the end
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

/** @throws InputError when the text is no JSON, or its bytes are no UTF-8 */
export function parseJson(text: string | Buffer): unknown {
  try {
    const decoded = typeof text === 'string' ? text : new TextDecoder('utf-8', { fatal: true }).decode(text);
    return JSON.parse(decoded);
  } catch (error) {
    throw new InputError('it is not JSON in UTF-8', { cause: error });
  }
}

/** @throws InputError */
export function parseWithSchema<T>(schema: z.ZodType<T>, value: unknown, at: readonly string[] = []): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.map(({ path, message }) => {
    const field = [...at, ...path].join('.');
    return field === '' ? message : `${field}: ${message}`;
  });
  throw new InputError(problems.join('; '));
}

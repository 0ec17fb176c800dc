import { isNativeError } from 'node:util/types';
import { truncate } from '../contract/bounds';
import { visible } from '../contract/text';
import type { Redactor } from './redaction';

/** A record deeper than this is a dumped object, not a message; the SDK's own records have three levels. */
const MAX_DEPTH = 6;
/** Entries of one array or object. */
const MAX_ENTRIES = 50;
/** Characters of one text: a stack trace fits, a dumped bundle doesn't. */
const MAX_CHARACTERS = 8_192;

/** Fields whose value is a secret whatever it is. */
const SECRET_FIELDS = /^(authorization|api[-_]?key|password|secret)$/i;

/**
 * The fields of a log record as plain JSON data: secrets redacted wherever they stand, errors with their causes, big
 * integers as texts, everything bounded. It never throws, whatever the SDK or an error object carries.
 */
export function logFields(meta: Readonly<Record<string, unknown>>, redactor: Redactor): LogFields {
  return fieldsOf(meta, { redactor, above: [] });
}

export type LogFields = Record<string, unknown>;

/** `text` redacted, bounded, and without control characters, by which a service could write to the terminal. */
export function logText(text: string, redactor: Redactor): string {
  // A stack trace keeps its lines.
  const shown = redactor.text(text).split('\n').map(visible).join('\n');
  return truncate(shown, MAX_CHARACTERS);
}

interface Walk {
  readonly redactor: Redactor;
  /** The objects that hold the current one, by which a cycle is noticed. */
  readonly above: readonly object[];
}

function plain(value: unknown, walk: Walk): unknown {
  switch (typeof value) {
    case 'string':
      return logText(value, walk.redactor);
    case 'bigint':
      return value.toString();
    case 'symbol':
    case 'function':
    case 'undefined':
      return undefined;
    case 'object':
      return value === null ? null : plainObject(value, walk);
    default:
      return value;
  }
}

function plainObject(value: object, walk: Walk): unknown {
  if (walk.above.includes(value)) return '[circular]';
  if (walk.above.length >= MAX_DEPTH) return '[…]';
  const inner: Walk = { redactor: walk.redactor, above: [...walk.above, value] };
  // Errors of another realm, as of the workflow sandbox, are no instances of this one's Error.
  if (value instanceof Error || isNativeError(value)) return errorFields(value, inner);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (value instanceof URL) return plain(value.href, inner);
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (Array.isArray(value) || value instanceof Set) {
    return [...value].slice(0, MAX_ENTRIES).map((item: unknown) => plain(item, inner));
  }
  if (value instanceof Map) return fieldsOf(Object.fromEntries(value) as object, inner);
  return fieldsOf(value, inner);
}

/** An error's message and stack are not enumerable, and its cause tells what really happened. */
function errorFields(error: Error, walk: Walk): LogFields {
  const { name, message, stack, cause } = error;
  return { ...fieldsOf(error, walk), ...fieldsOf({ name, message, stack, cause }, walk) };
}

function fieldsOf(value: object, walk: Walk): LogFields {
  const fields: LogFields = {};
  for (const key of Object.keys(value).slice(0, MAX_ENTRIES)) {
    const field = SECRET_FIELDS.test(key) ? '[redacted]' : plain(read(value, key), walk);
    if (field !== undefined) fields[key] = field;
  }
  return fields;
}

/** A getter may throw; a log record must not. */
function read(value: object, key: string): unknown {
  try {
    return (value as Readonly<Record<string, unknown>>)[key];
  } catch {
    return '[unreadable]';
  }
}

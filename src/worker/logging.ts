import { hostname } from 'node:os';
import { isNativeError } from 'node:util/types';
import { type Logger, type LogLevel, type LogMetadata, LogTimestamp } from '@temporalio/worker';
import pino from 'pino';
import { isColorSupported, prettyFactory } from 'pino-pretty';
import { redact } from '../agent-api/redaction';
import { truncate, visible } from '../core/text';
import type { LogLevelName } from './variables';

/** Where lines go; standard output is one. */
export interface LogDestination {
  readonly isTTY?: boolean;
  readonly fd?: number;
  write(line: string): unknown;
}

/** The fields that pino writes itself. A field of that name in a record is renamed, since JSON keys must not repeat. */
const OWN_FIELDS = new Set(['level', 'time', 'pid', 'hostname', 'msg']);

/** Fields of the SDK that help a machine, and only fill the screen for a person. */
const UNREADABLE_FIELDS = 'pid,hostname,taskToken,isLocal,attempt,target,spanContexts,sdkComponent';

/**
 * The only logger of the process, for its own lines and, through `Runtime.install`, for those of the SDK, its Rust core,
 * the workflows and the activities. One JSON object per line; on a terminal a readable line with colours (`NO_COLOR`
 * turns these off). Every record passes the redactor.
 *
 * Lines are written synchronously, so that the last lines of a process that ends are never lost.
 */
export function createLogger(
  level: LogLevelName,
  redactor: Redactor,
  destination: LogDestination = process.stdout,
): Logger {
  const options: pino.LoggerOptions = {
    level,
    base: { pid: process.pid, hostname: hostname() },
    timestamp: false,
    formatters: { level: (label) => ({ level: label }) },
  };
  return new PinoLogger(pino(options, lineStream(destination)), redactor);
}

function lineStream(destination: LogDestination): pino.DestinationStream {
  const target = destination.fd === undefined ? destination : synchronous(destination.fd);
  if (destination.isTTY !== true) return target;
  // Not pino-pretty's stream: it writes later, and a process that ends would swallow its last lines.
  const readable = prettyFactory({
    colorize: isColorSupported,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: UNREADABLE_FIELDS,
  });
  return {
    write: (line) => {
      target.write(readable(line));
    },
  };
}

function synchronous(fd: number): pino.DestinationStream {
  const stream = pino.destination({ fd, sync: true });
  // A reader of the log that went away (EPIPE) must not kill a worker with a POST in flight.
  stream.on('error', () => undefined);
  return stream;
}

/** The SDK's logger interface on pino. */
class PinoLogger implements Logger {
  constructor(
    private readonly pino: pino.Logger,
    private readonly redactor: Redactor,
  ) {}

  log(level: LogLevel, message: string, meta: LogMetadata = {}): void {
    const name = ownLevel(level, message, meta);
    if (!this.pino.isLevelEnabled(name)) return;
    const fields = Object.entries(logFields(meta, this.redactor)).map(([key, value]) => [
      OWN_FIELDS.has(key) ? `${key}_` : key,
      value,
    ]);
    const record = { time: recordTime(meta), ...(Object.fromEntries(fields) as object) };
    this.pino[name](record, '%s', logText(message, this.redactor));
  }

  trace(message: string, meta?: LogMetadata): void {
    this.log('TRACE', message, meta);
  }

  debug(message: string, meta?: LogMetadata): void {
    this.log('DEBUG', message, meta);
  }

  info(message: string, meta?: LogMetadata): void {
    this.log('INFO', message, meta);
  }

  warn(message: string, meta?: LogMetadata): void {
    this.log('WARN', message, meta);
  }

  error(message: string, meta?: LogMetadata): void {
    this.log('ERROR', message, meta);
  }
}

/** By design, two of the three workers have no workflows, and one has no activity tasks. */
const BY_DESIGN = /^No (workflows|activities) registered/;

/**
 * The SDK's lines about itself ("Creating worker" with all options, "Worker state changed") are debug here: the worker
 * has its own lines for when it is ready and when it drains.
 */
function ownLevel(level: LogLevel, message: string, meta: LogMetadata): LogLevelName {
  const fromTheSdk = meta.sdkComponent === 'worker' || meta.sdkComponent === 'core';
  const unimportant = level === 'INFO' || BY_DESIGN.test(message);
  return fromTheSdk && unimportant ? 'debug' : (level.toLowerCase() as LogLevelName);
}

/** When it happened, ISO 8601 in UTC. The SDK holds its records back for 100 ms to sort them, and gives their time. */
function recordTime(meta: LogMetadata): string {
  const nanoseconds = (meta as { readonly [LogTimestamp]?: unknown })[LogTimestamp];
  const at = typeof nanoseconds === 'bigint' ? new Date(Number(nanoseconds / 1_000_000n)) : new Date();
  return at.toISOString();
}

/** A record deeper than this is a dumped object, not a message; the SDK's own records have three levels. */
const MAX_DEPTH = 6;
/** Entries of one array or object. */
const MAX_ENTRIES = 50;
/** Characters of one text: a stack trace fits, a dumped bundle doesn't. */
const MAX_CHARACTERS = 8_192;

/** Fields whose value is a secret whatever it is. */
const SECRET_FIELDS = /^(authorization|api[-_]?key|password|secret)$/i;

/**
 * The fields of a log record as plain JSON data: secrets redacted everywhere, errors with their causes, big integers as
 * texts, everything bounded. It never throws, whatever the SDK or an error object carries.
 */
function logFields(meta: Readonly<Record<string, unknown>>, redactor: Redactor): LogFields {
  return fieldsOf(meta, { redactor, above: [] });
}

type LogFields = Record<string, unknown>;

/** `text` redacted, bounded, and without control characters, with which a service could control the terminal. */
function logText(text: string, redactor: Redactor): string {
  // A stack trace keeps its lines.
  const shown = redactor.text(text).split('\n').map(visible).join('\n');
  return truncate(shown, MAX_CHARACTERS);
}

interface Walk {
  readonly redactor: Redactor;
  /** The objects that hold the current one, to notice a cycle. */
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
  // Errors of another realm, such as the workflow sandbox, are not instances of this realm's Error.
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

/** An error's message and stack are not enumerable, and its cause says what really happened. */
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

/**
 * Removes the known secrets from texts. Everything that the process shows passes one redactor: log records, messages on
 * stderr, the answers of the health server.
 */
export class Redactor {
  private readonly secrets = new Set<string>();

  /** Makes a secret known. A rotated key is added beside the old one, which may still appear in an error. */
  add(secret: string | undefined): void {
    if (secret !== undefined && secret !== '') this.secrets.add(secret);
  }

  /** `text` without any known secret in any of its usual encodings, and without the word that follows Bearer. */
  readonly text = (text: string): string => {
    return redact(text, this.secrets).replaceAll(/\b(Bearer\s+)[^\s"',;]+/gi, '$1[redacted]');
  };
}

import { hostname } from 'node:os';
import { isNativeError } from 'node:util/types';
import { type Logger, type LogLevel, type LogMetadata, LogTimestamp } from '@temporalio/worker';
import pino from 'pino';
import { isColorSupported, prettyFactory } from 'pino-pretty';
import { redact } from '../agent-api/redaction';
import { isRecord } from '../core/json';
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
 * turns these off). Every line passes the redactor.
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
  return new PinoLogger(pino(options, lineStream(destination, redactor)));
}

function lineStream(destination: LogDestination, redactor: Redactor): pino.DestinationStream {
  const target = destination.fd === undefined ? destination : synchronous(destination.fd);
  // Not pino-pretty's stream: it writes later, and a process that ends would swallow its last lines.
  const show =
    destination.isTTY === true
      ? prettyFactory({
          colorize: isColorSupported,
          singleLine: true,
          translateTime: 'SYS:HH:MM:ss.l',
          ignore: UNREADABLE_FIELDS,
        })
      : (line: string) => line;
  return {
    write: (line) => {
      target.write(show(safeLine(line, redactor)));
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
  constructor(private readonly pino: pino.Logger) {}

  log(level: LogLevel, message: string, meta: LogMetadata = {}): void {
    const name = ownLevel(level, message, meta);
    if (!this.pino.isLevelEnabled(name)) return;
    const time = recordTime(meta);
    try {
      this.pino[name]({ time, ...recordFields(meta) }, '%s', message);
    } catch (error) {
      // A getter that throws: a log record must not.
      this.pino[name]({ time, unreadable: String(error) }, '%s', message);
    }
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

/** The fields of a record. Errors, those of the workflow sandbox too, hide message, stack and cause from JSON. */
function recordFields(meta: LogMetadata): Record<string, unknown> {
  const fields = Object.entries(meta).map(([key, value]: [string, unknown]) => [
    OWN_FIELDS.has(key) ? `${key}_` : key,
    value instanceof Error || isNativeError(value) ? pino.stdSerializers.errWithCause(value) : value,
  ]);
  return Object.fromEntries(fields) as Record<string, unknown>;
}

/** When it happened, ISO 8601 in UTC. The SDK holds its records back for 100 ms to sort them, and gives their time. */
function recordTime(meta: LogMetadata): string {
  const nanoseconds = (meta as { readonly [LogTimestamp]?: unknown })[LogTimestamp];
  const at = typeof nanoseconds === 'bigint' ? new Date(Number(nanoseconds / 1_000_000n)) : new Date();
  return at.toISOString();
}

/** Characters of one text: a stack trace fits, a dumped bundle doesn't. */
const MAX_CHARACTERS = 8_192;

/** Characters of a line: a longer record is a dumped object, not a message. */
const MAX_LINE_CHARACTERS = 65_536;

/** Fields whose value is a secret whatever it is. */
const SECRET_FIELDS = /^(authorization|api[-_]?key|password|secret)$/i;

/**
 * The finished line once more: without secrets, whatever object brought them, and bounded. The texts are decoded for it, so
 * that JSON's escapes hide no secret, and what is left is JSON in any case. Bytes could spell a secret, so they go.
 */
function safeLine(line: string, redactor: Redactor): string {
  const record = JSON.parse(line, (key, value: unknown) => {
    if (SECRET_FIELDS.test(key)) return '[redacted]';
    if (isRecord(value) && (value.type === 'Buffer' || '0' in value)) return '[bytes]';
    return typeof value === 'string' ? logText(value, redactor) : value;
  }) as Readonly<Record<string, unknown>>;
  const safe = JSON.stringify(record);
  if (safe.length <= MAX_LINE_CHARACTERS) return `${safe}\n`;
  const own = Object.entries(record).filter(([key]) => OWN_FIELDS.has(key));
  return `${JSON.stringify({ ...Object.fromEntries(own), cut: truncate(safe, MAX_CHARACTERS) })}\n`;
}

/** `text` redacted, bounded, and without control characters, with which a service could control the terminal. */
function logText(text: string, redactor: Redactor): string {
  // A stack trace keeps its lines.
  const shown = redactor.text(text).split('\n').map(visible).join('\n');
  return truncate(shown, MAX_CHARACTERS);
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

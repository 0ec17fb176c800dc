import { isNativeError } from 'node:util/types';
import { DefaultLogger, type LogEntry, type Logger } from '@temporalio/worker';
import pino from 'pino';
import { isColorSupported, prettyFactory } from 'pino-pretty';
import type { Redactor } from '../agent-api/redaction';
import { isRecord } from '../contract/checks';
import { truncate, replaceUnsafe } from '../contract/text';
import type { LogLevelName } from './variables';

export interface LogDestination {
  readonly isTTY?: boolean;
  readonly write: (line: string) => unknown;
}

function standardOutput(): LogDestination {
  const stream = pino.destination({ fd: process.stdout.fd, sync: true });
  // If the reader of the log exits (EPIPE), the worker continues, because it may have a POST in progress.
  stream.on('error', () => undefined);
  return { isTTY: process.stdout.isTTY, write: (line) => stream.write(line) };
}

/** The fields that pino writes. A field of a record with such a name is renamed, because a JSON key must not occur twice. */
const PINO_FIELDS = new Set(['level', 'time', 'pid', 'hostname', 'msg']);

/** The fields that the logger omits on a terminal, because they are useful only to programs. */
const HIDDEN_FIELDS = 'pid,hostname,taskToken,isLocal,attempt,target,spanContexts,sdkComponent';

/**
 * Creates the only logger of the process, which the SDK and its Rust core use too. Each record is one line: JSON, or readable text on a
 * terminal. Every line is redacted, and written synchronously, so that the last lines of a process are not lost.
 */
export function createLogger(
  level: LogLevelName,
  redactor: Redactor,
  { isTTY, write } = standardOutput(),
): Logger {
  const options = { level, timestamp: false, formatters: { level: (label: string) => ({ level: label }) } };
  // The stream of pino-pretty is not used, because it writes later, so a process that exits would lose its last lines.
  const pretty = { singleLine: true, translateTime: 'SYS:HH:MM:ss.l', ignore: HIDDEN_FIELDS };
  const show = isTTY ? prettyFactory({ ...pretty, colorize: isColorSupported }) : String;
  const log = pino(options, { write: (line) => void write(show(safeLine(line, redactor))) });
  return new DefaultLogger('TRACE', (entry) => {
    const { message, timestampNanos } = entry;
    // The time is from the record, because the SDK delays its records by up to 100 ms to sort them.
    const time = new Date(Number(timestampNanos / 1_000_000n)).toISOString();
    const pinoLevel = toPinoLevel(entry);
    if (!log.isLevelEnabled(pinoLevel)) return;
    log[pinoLevel]({ time, ...recordFields(entry) }, '%s', message);
  });
}

const EXPECTED_MESSAGE = /^No (workflows|activities) registered/;

/** Returns the level of a record. The SDK's records about itself ("Creating worker") get the level debug. */
function toPinoLevel({ level, message, meta }: LogEntry): LogLevelName {
  const isFromSdk = meta?.sdkComponent === 'worker' || meta?.sdkComponent === 'core';
  const isUnimportant = level === 'INFO' || EXPECTED_MESSAGE.test(message);
  return isFromSdk && isUnimportant ? 'debug' : (level.toLowerCase() as LogLevelName);
}

/** Serializes errors, because JSON omits their message, stack and cause. Errors of the workflow sandbox are included. */
function recordFields({ meta = {} }: LogEntry): Record<string, unknown> {
  const fields = Object.entries(meta).map(([key, value]: [string, unknown]) => [
    PINO_FIELDS.has(key) ? `${key}_` : key,
    value instanceof Error || isNativeError(value) ? pino.stdSerializers.errWithCause(value) : value,
  ]);
  return Object.fromEntries(fields) as Record<string, unknown>;
}

/** The maximum length of a line. A longer line is a dumped object, and only its first 8,192 characters are logged. */
const MAX_LINE_CHARACTERS = 65_536;
const MAX_CUT_CHARACTERS = 8_192;

const SECRET_FIELDS = /^(authorization|api[-_]?key|password|secret)$/i;

/** Limits the length of a line and redacts every text in it. Bytes are removed, because they could contain a secret. */
function safeLine(line: string, redactor: Redactor): string {
  const record = JSON.parse(line, (key, value: unknown) => {
    if (SECRET_FIELDS.test(key)) return '[redacted]';
    if (isRecord(value) && (value.type === 'Buffer' || '0' in value)) return '[bytes]';
    return typeof value === 'string' ? logText(value, redactor) : value;
  }) as Readonly<Record<string, unknown>>;
  const safe = JSON.stringify(record);
  if (safe.length <= MAX_LINE_CHARACTERS) return `${safe}\n`;
  const pinoFields = Object.entries(record).filter(([key]) => PINO_FIELDS.has(key));
  return `${JSON.stringify({ ...Object.fromEntries(pinoFields), cut: truncate(safe, MAX_CUT_CHARACTERS) })}\n`;
}

/** Redacts a text and removes its control characters, which a terminal would execute. A stack trace keeps its lines. */
function logText(text: string, redactor: Redactor): string {
  return redactor.redact(text).split('\n').map(replaceUnsafe).join('\n');
}

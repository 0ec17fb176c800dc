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
  // A reader of the log that went away (EPIPE) must not kill a worker with a POST in flight.
  stream.on('error', () => undefined);
  return { isTTY: process.stdout.isTTY, write: (line) => stream.write(line) };
}

/** Those of pino. A field of that name in a record is renamed, since JSON keys must not repeat. */
const PINO_FIELDS = new Set(['level', 'time', 'pid', 'hostname', 'msg']);

/** Fields of the SDK that help a machine, and only fill the screen for a person. */
const HIDDEN_FIELDS = 'pid,hostname,taskToken,isLocal,attempt,target,spanContexts,sdkComponent';

/**
 * The only logger of the process, also of the SDK and its Rust core: one JSON object per line, on a terminal a readable line.
 * Every line passes the redactor, and is written synchronously, so that the last ones aren't lost.
 */
export function createLogger(
  level: LogLevelName,
  redactor: Redactor,
  { isTTY, write } = standardOutput(),
): Logger {
  const options = { level, timestamp: false, formatters: { level: (label: string) => ({ level: label }) } };
  // Not pino-pretty's stream: it writes later, and a process that ends would swallow its last lines.
  const pretty = { singleLine: true, translateTime: 'SYS:HH:MM:ss.l', ignore: HIDDEN_FIELDS };
  const show = isTTY ? prettyFactory({ ...pretty, colorize: isColorSupported }) : String;
  const log = pino(options, { write: (line) => void write(show(safeLine(line, redactor))) });
  return new DefaultLogger('TRACE', (entry) => {
    const { message, timestampNanos } = entry;
    // The SDK holds its records back for 100 ms to sort them, and gives their time.
    const time = new Date(Number(timestampNanos / 1_000_000n)).toISOString();
    const pinoLevel = toPinoLevel(entry);
    if (!log.isLevelEnabled(pinoLevel)) return;
    log[pinoLevel]({ time, ...recordFields(entry) }, '%s', message);
  });
}

const EXPECTED_MESSAGE = /^No (workflows|activities) registered/;

/** The SDK's lines about itself ("Creating worker") are debug here. */
function toPinoLevel({ level, message, meta }: LogEntry): LogLevelName {
  const isFromSdk = meta?.sdkComponent === 'worker' || meta?.sdkComponent === 'core';
  const isUnimportant = level === 'INFO' || EXPECTED_MESSAGE.test(message);
  return isFromSdk && isUnimportant ? 'debug' : (level.toLowerCase() as LogLevelName);
}

/** Errors, those of the workflow sandbox too, hide message, stack and cause from JSON. */
function recordFields({ meta = {} }: LogEntry): Record<string, unknown> {
  const fields = Object.entries(meta).map(([key, value]: [string, unknown]) => [
    PINO_FIELDS.has(key) ? `${key}_` : key,
    value instanceof Error || isNativeError(value) ? pino.stdSerializers.errWithCause(value) : value,
  ]);
  return Object.fromEntries(fields) as Record<string, unknown>;
}

/** A longer line is a dumped object, of which only the beginning is logged. */
const MAX_LINE_CHARACTERS = 65_536;
const MAX_CUT_CHARACTERS = 8_192;

const SECRET_FIELDS = /^(authorization|api[-_]?key|password|secret)$/i;

/** Limits the finished line and redacts every text in it. Bytes are removed, because they could contain a secret. */
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

/** Removes control characters, which a terminal would obey. A stack trace keeps its lines. */
function logText(text: string, redactor: Redactor): string {
  return redactor.redact(text).split('\n').map(replaceUnsafe).join('\n');
}

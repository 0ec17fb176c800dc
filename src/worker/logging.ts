import { isNativeError } from 'node:util/types';
import { DefaultLogger, type LogEntry, type Logger } from '@temporalio/worker';
import pino from 'pino';
import { isColorSupported, prettyFactory } from 'pino-pretty';
import { MAX_EXAMINED_CHARACTERS, type Redactor } from '../agent-api/redaction';
import { isRecord, type JsonObject } from '../contract/checks';
import { BATCH_WORKFLOW, FOLLOW_UP_WORKFLOW, NOTIFICATION_WORKFLOW } from '../contract/names';
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
 * Creates the only logger of the process, which the SDK and its Rust core use too. Each record is one line: JSON, or readable
 * text on a terminal. Every line is redacted, and written synchronously, so that the last lines of a process are not lost.
 */
export function createLogger(
  level: LogLevelName,
  redactor: Pick<Redactor, 'redact'>,
  { isTTY, write } = standardOutput(),
): Logger {
  const options = { level, timestamp: false, formatters: { level: (label: string) => ({ level: label }) } };
  // The stream of pino-pretty is not used, because it writes later, so a process that exits would lose its last lines.
  const pretty = { singleLine: true, translateTime: 'SYS:HH:MM:ss.l', ignore: HIDDEN_FIELDS };
  const show = isTTY ? prettyFactory({ ...pretty, colorize: isColorSupported }) : String;
  const log = pino(options, { write: (line) => void write(show(limitLine(line))) });
  return new DefaultLogger('TRACE', (received) => {
    const entry = summarizeExpectedFailure(received);
    const { message, timestampNanos } = entry;
    // The time is from the record, because the SDK delays its records by up to 100 ms to sort them.
    const time = new Date(Number(timestampNanos / 1_000_000n)).toISOString();
    const pinoLevel = toPinoLevel(entry);
    if (!log.isLevelEnabled(pinoLevel)) return;
    log[pinoLevel]({ time, ...safeFields(recordFields(entry), redactor) }, '%s', logText(message, redactor));
  });
}

const EXPECTED_MESSAGE = /^No (workflows|activities) registered/;

/** Returns the level of a record. The SDK's records about itself ("Creating worker") get the level debug. */
function toPinoLevel({ level, message, meta }: LogEntry): LogLevelName {
  const isFromSdk = meta?.sdkComponent === 'worker' || meta?.sdkComponent === 'core';
  const isUnimportant = level === 'INFO' || EXPECTED_MESSAGE.test(message);
  return isFromSdk && isUnimportant ? 'debug' : (level.toLowerCase() as LogLevelName);
}

/** The workflow types whose failures are outcomes. docs/result.md and docs/batches.md describe the types of these failures. */
const OUTCOME_WORKFLOWS: readonly unknown[] = [FOLLOW_UP_WORKFLOW, BATCH_WORKFLOW];

/**
 * Returns the record of a failed follow-up or batch, or of a failed notification, as one line without a stack trace. The SDK logs
 * these failures as warnings with a stack trace, although they are outcomes that a caller handles and not bugs. A bug in workflow
 * code fails the workflow's task, and has another record.
 */
function summarizeExpectedFailure(entry: LogEntry): LogEntry {
  const { message, meta: { error, ...meta } = {} } = entry;
  const isOutcome = message === 'Workflow failed' && OUTCOME_WORKFLOWS.includes(meta.workflowType);
  const isNotification =
    (message === 'Workflow failed' && meta.workflowType === NOTIFICATION_WORKFLOW) ||
    (message === 'Activity failed' && meta.activityType === 'postNotification');
  if (!isRecord(error) || !(isOutcome || isNotification)) return entry;
  const summary = { ...entry, message: `${message}: ${errorText(error)}` };
  // A notification that did not arrive needs an operator, so its record stays a warning.
  if (isNotification) return { ...summary, meta };
  return { ...summary, level: 'INFO', meta: { ...meta, sdkComponent: 'workflow' } };
}

function errorText({ message, cause }: JsonObject): string {
  const text = typeof message === 'string' ? message : 'unknown error';
  return isRecord(cause) && typeof cause.message === 'string' ? `${text}: ${cause.message}` : text;
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

/** Limits the length of a line. Every text in the line is already redacted. */
function limitLine(line: string): string {
  if (line.length <= MAX_LINE_CHARACTERS) return line;
  const record = JSON.parse(line) as Readonly<Record<string, unknown>>;
  const pinoFields = Object.entries(record).filter(([key]) => PINO_FIELDS.has(key));
  return `${JSON.stringify({ ...Object.fromEntries(pinoFields), cut: truncate(line, MAX_CUT_CHARACTERS) })}\n`;
}

/**
 * The maximum number of characters of one record that are examined for secrets, because examining megabytes would block the event
 * loop. The limit applies to whole texts: the redactor gets a text, or the text is omitted. If a text is long, the redactor
 * examines and returns only its beginning.
 */
const MAX_RECORD_CHARACTERS = 262_144;
/** Each value counts as this number of characters, in addition to its own length. */
const VALUE_CHARACTERS = 16;
/** The maximum number of items of a list, and of properties of an object. */
const MAX_LIST_ITEMS = 1_000;
/** The maximum length of a property's name. */
const MAX_NAME_CHARACTERS = 256;
const OMITTED = '[omitted: the record is too large]';

const SECRET_FIELDS = /^(authorization|api[-_]?key|password|secret)$/i;

/**
 * Limits the size of the fields, and redacts every text and property name in them. Bytes are removed, because they could contain a
 * secret. An object that contains itself is replaced at its second occurrence.
 */
function safeFields(fields: object, redactor: Pick<Redactor, 'redact'>): Record<string, unknown> {
  const copyWithSafeNames = (value: object) =>
    Object.fromEntries(
      Object.entries(value)
        .slice(0, MAX_LIST_ITEMS)
        .map(([name, field]: [string, unknown]) => [
          name.length > MAX_NAME_CHARACTERS ? OMITTED : logText(name, redactor),
          field,
        ]),
    );
  let room = MAX_RECORD_CHARACTERS;
  const parents: { readonly original: object; readonly copy: object }[] = [];
  function replace(this: unknown, key: string, value: unknown): unknown {
    if (SECRET_FIELDS.test(key)) return '[redacted]';
    room -=
      VALUE_CHARACTERS +
      key.length +
      (typeof value === 'string' ? Math.min(value.length, MAX_EXAMINED_CHARACTERS) : 0);
    if (room < 0) return OMITTED;
    if (typeof value === 'string') return logText(value, redactor);
    if (typeof value === 'bigint') return String(value);
    if (typeof value !== 'object' || value === null) return value;
    if (ArrayBuffer.isView(value) || (isRecord(value) && value.type === 'Buffer')) return '[bytes]';
    while (parents.length > 0 && parents.at(-1)?.copy !== this) parents.pop();
    if (parents.some(({ original }) => original === value)) return '[circular]';
    const copy: object = Array.isArray(value) ? value.slice(0, MAX_LIST_ITEMS) : copyWithSafeNames(value);
    parents.push({ original: value, copy });
    return copy;
  }
  try {
    return JSON.parse(JSON.stringify(fields, replace)) as Record<string, unknown>;
  } catch (error) {
    return { fields: `[could not be logged: ${logText(String(error), redactor)}]` };
  }
}

/** Redacts a text and removes its control characters, which a terminal would execute. A stack trace keeps its lines. */
function logText(text: string, redactor: Pick<Redactor, 'redact'>): string {
  return redactor.redact(text).split('\n').map(replaceUnsafe).join('\n');
}

import { hostname } from 'node:os';
import { LogTimestamp, type Logger, type LogLevel, type LogMetadata } from '@temporalio/worker';
import pino from 'pino';
import { isColorSupported, prettyFactory } from 'pino-pretty';
import { logFields, logText } from './log-fields';
import type { LogLevelName } from './log-level';
import type { Redactor } from './redaction';

/** Where lines go; standard output is one. */
export interface LogDestination {
  readonly isTTY?: boolean;
  readonly fd?: number;
  write(line: string): unknown;
}

/** The fields that pino writes itself; a field of that name in a record is renamed, since JSON keys must not repeat. */
const OWN_FIELDS = new Set(['level', 'time', 'pid', 'hostname', 'msg']);

/** Fields of the SDK that help a machine, and fill the screen of a person. */
const UNREADABLE_FIELDS = 'pid,hostname,taskToken,isLocal,attempt,target,spanContexts,sdkComponent';

/**
 * The process's one logger, for our own lines and, through `Runtime.install`, for the SDK's, its Rust core's, the
 * workflows' and the activities'. One JSON object per line; on a terminal a readable line with colours (`NO_COLOR`
 * turns these off). Every record passes the redactor.
 *
 * Lines are written synchronously, so that the last words of a process that ends are never lost.
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

/** Two of the three workers have no workflows, one has no activity tasks: that is how they are meant. */
const BY_DESIGN = /^No (workflows|activities) registered/;

/**
 * What the SDK tells of its own life ("Creating worker" with all options, "Worker state changed") is debug here: the
 * worker says in lines of its own when it is ready and when it drains.
 */
function ownLevel(level: LogLevel, message: string, meta: LogMetadata): LogLevelName {
  const fromTheSdk = meta.sdkComponent === 'worker' || meta.sdkComponent === 'core';
  const unimportant = level === 'INFO' || BY_DESIGN.test(message);
  return fromTheSdk && unimportant ? 'debug' : (level.toLowerCase() as LogLevelName);
}

/** When it happened, ISO 8601 in UTC. The SDK holds its records back for 100 ms to sort them, and tells their time. */
function recordTime(meta: LogMetadata): string {
  const nanoseconds = (meta as { readonly [LogTimestamp]?: unknown })[LogTimestamp];
  const at = typeof nanoseconds === 'bigint' ? new Date(Number(nanoseconds / 1_000_000n)) : new Date();
  return at.toISOString();
}

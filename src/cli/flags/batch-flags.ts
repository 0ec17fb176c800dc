import type { Command } from 'commander';
import { CONCURRENCY, type Tolerance } from '../../core/batch';
import { UsageError } from '../exit-codes';

/** The flags that start a batch. */
export interface StartFlags {
  readonly concurrency?: string;
  readonly tolerate?: string;
  readonly wait: boolean;
  readonly json?: boolean;
}

export function addStartFlags(command: Command): Command {
  return addRunFlags(command)
    .option('--no-wait', 'print the batch id when everything is handed over, instead of waiting for the end')
    .option(
      '--json',
      'print JSON lines: one per item in the order of settling, and { batchId, state, message, summary } at the end',
    );
}

/** Adds the flags that say how a batch runs, for `batch` and `schedule`. */
export function addRunFlags(command: Command): Command {
  const { minimum, maximum, default: usual } = CONCURRENCY;
  return command
    .option(
      '--concurrency <n>',
      `how many follow-ups of a batch are open at a time, ${minimum} to ${maximum} (default: ${usual})`,
    )
    .option(
      '--tolerate <n|p%>',
      'if more items than this number, or this share of all, have failed, the batch starts no further item and fails (default: no limit)',
    );
}

/** @throws UsageError with every problem */
export function batchOptionsOf({
  concurrency,
  tolerate,
}: {
  readonly concurrency?: string | undefined;
  readonly tolerate?: string | undefined;
}): {
  readonly concurrency?: number;
  readonly tolerate?: Tolerance;
} {
  const places = concurrency === undefined ? undefined : parseConcurrency(concurrency);
  const tolerance = tolerate === undefined ? undefined : parseTolerance(tolerate);
  const problems = [places, tolerance].filter((each) => typeof each === 'string');
  if (typeof places === 'string' || typeof tolerance === 'string') throw new UsageError(problems);
  return {
    ...(places === undefined ? {} : { concurrency: places }),
    ...(tolerance === undefined ? {} : { tolerate: tolerance }),
  };
}

/** @throws UsageError */
export function concurrencyOf(text: string): number {
  const places = parseConcurrency(text);
  if (typeof places === 'string') throw new UsageError([places.replace('--concurrency', 'concurrency')]);
  return places;
}

/** The number, or a problem. */
function parseConcurrency(text: string): number | string {
  const { minimum, maximum } = CONCURRENCY;
  const places = /^\d+$/.test(text) ? Number(text) : NaN;
  return places >= minimum && places <= maximum
    ? places
    : `--concurrency: must be a whole number from ${minimum} to ${maximum}; it is ${JSON.stringify(text)}`;
}

/** The tolerance, or a problem. */
function parseTolerance(text: string): NonNullable<Tolerance> | string {
  const [, number = '', percent] = /^(\d+(?:\.\d+)?)(%?)$/.exec(text) ?? [];
  if (percent === '%' && Number(number) <= 100) return { percent: Number(number) };
  if (percent === '' && Number.isSafeInteger(Number(number))) return { items: Number(number) };
  return `--tolerate: must be a number of items ("5") or a percentage of all ("2.5%"); it is ${JSON.stringify(text)}`;
}

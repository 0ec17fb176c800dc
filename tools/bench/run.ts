import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg, totalmem } from 'node:os';
import path from 'node:path';
import { InvalidArgumentError } from 'commander';
import { findTemporalCli } from '../lib/temporal-cli';
import { INTERRUPTED_EXIT_CODE, interruption } from '../lib/interruption';
import { BenchEnvironment } from './bench-environment';

const REPORTS = path.resolve(__dirname, '../../reports');

/**
 * Opens the environment, measures on it, closes it in any case, and ends the process: also after a failure, and after Ctrl-C,
 * which gives up what is under way. Prints what the figures depend on; nothing names the machine.
 */
export function runBench(measure: (environment: BenchEnvironment) => Promise<void>): void {
  const interrupted = interruption();
  const work = async (): Promise<void> => {
    const cli = await findTemporalCli({ env: process.env, report: printProgress });
    const memory = `${availableParallelism()} cores, ${Math.round(totalmem() / 2 ** 30)} GiB`;
    const load = `load before ${(loadavg()[0] ?? NaN).toFixed(1)}`;
    console.log(
      `${memory}, Node ${process.version}, Temporal server ${cli.version.server} in memory; ${load}`,
    );
    const environment = await BenchEnvironment.open(cli.path);
    try {
      const measuring = measure(environment);
      await Promise.race([measuring, interrupted.happened]);
      // What is cut off in the middle fails on what has been closed; it is no news.
      measuring.catch(() => undefined);
    } finally {
      await environment.close();
    }
  };
  work().then(
    () => process.exit(interrupted.pending() ? INTERRUPTED_EXIT_CODE : 0),
    (error: unknown) => {
      printProgress(error instanceof Error ? (error.stack ?? error.message) : String(error));
      process.exit(1);
    },
  );
}

/** Progress, for people. */
export function printProgress(line: string): void {
  process.stderr.write(`[bench] ${line}\n`);
}

/** Prints a table, and leaves the same in `reports/`. */
export function report(file: string, rows: Readonly<Record<string, unknown>> | readonly object[]): void {
  const rounded = (_: string, value: unknown) =>
    typeof value === 'number' ? Number(value.toPrecision(4)) : value;
  const text = JSON.stringify(rows, rounded, 2);
  mkdirSync(REPORTS, { recursive: true });
  writeFileSync(path.join(REPORTS, file), `${text}\n`);
  console.table(JSON.parse(text));
  console.log(`Took ${Math.round(process.uptime())} s; reports/${file}`);
}

/** An argument of a bench. @throws InvalidArgumentError */
export function wholeNumber(text: string): number {
  if (/^[1-9]\d*$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number above 0.');
}

/** The value below which `share` of all are; with a half, the median. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}

import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg, totalmem } from 'node:os';
import path from 'node:path';
import { InvalidArgumentError } from 'commander';
import { findTemporalCli } from '../lib/temporal-cli';
import { INTERRUPTED_EXIT_CODE, interruption } from '../lib/interruption';
import { BenchEnvironment } from './bench-environment';

const REPORTS = path.resolve(__dirname, '../../reports');

/**
 * Opens the environment, runs a benchmark in it, closes the environment, and ends the process. A failure or a Ctrl-C closes the environment,
 * too. The output has the properties of the machine that affect the figures, but not its name.
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
      // After Ctrl-C, the benchmark fails because its environment is closed. This error is ignored.
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

/** Prints a line of progress to stderr. */
export function printProgress(line: string): void {
  process.stderr.write(`[bench] ${line}\n`);
}

/** Prints a table, and writes the same values to a file in `reports/`. */
export function report(file: string, rows: Readonly<Record<string, unknown>> | readonly object[]): void {
  const rounded = (_: string, value: unknown) =>
    typeof value === 'number' ? Number(value.toPrecision(4)) : value;
  const text = JSON.stringify(rows, rounded, 2);
  mkdirSync(REPORTS, { recursive: true });
  writeFileSync(path.join(REPORTS, file), `${text}\n`);
  console.table(JSON.parse(text));
  console.log(`Took ${Math.round(process.uptime())} s; reports/${file}`);
}

/** Parses a whole number above 0. @throws InvalidArgumentError */
export function wholeNumber(text: string): number {
  if (/^[1-9]\d*$/.test(text)) return Number(text);
  throw new InvalidArgumentError('The value must be a whole number above 0.');
}

/** Returns the value below which this share of the values is. With a share of 0.5, the value is the median. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}

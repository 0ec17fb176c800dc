import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { InvalidArgumentError } from 'commander';
import { type DevServerOptions, startDevServer } from '../dev/dev-server';
import { findTemporalCli } from '../dev/temporal-cli';
import { interruption } from '../dev/tether';
import { Ground, QUICK_TIMERS } from './ground';
import { machineFacts, type MachineFacts } from './machine';

const REPORTS = path.resolve(__dirname, '../reports');

/** As a shell reports a program that Ctrl-C has ended. */
const INTERRUPTED = 130;

/**
 * Opens the ground, measures on it, closes it in any case, and ends the process: also after a failure, and after Ctrl-C,
 * which gives up what is under way.
 *
 * @param settings of the server by name, on top of those that the project needs
 */
export function runBench(
  measure: (ground: Ground, machine: MachineFacts) => Promise<void>,
  settings: DevServerOptions['dynamicConfig'] = {},
): void {
  const interrupted = interruption();
  const work = async (): Promise<void> => {
    const cli = await findTemporalCli({ env: process.env, say });
    const machine = machineFacts(cli);
    const start = (options: object) => startDevServer({ ...options, cli: cli.path });
    const ground = await Ground.open(start, { ...QUICK_TIMERS, ...settings });
    try {
      const measuring = measure(ground, machine);
      await Promise.race([measuring, interrupted.happened]);
      // What is cut off in the middle fails on what has been closed; it is no news.
      measuring.catch(() => undefined);
    } finally {
      await ground.close();
    }
  };
  work().then(
    () => process.exit(interrupted.pending() ? INTERRUPTED : 0),
    (error: unknown) => {
      say(error instanceof Error ? (error.stack ?? error.message) : String(error));
      process.exit(1);
    },
  );
}

/** Progress, for people. */
export function say(line: string): void {
  process.stderr.write(`[bench] ${line}\n`);
}

/** @returns where the report is, as one writes it in the project's folder */
export function writeReport(file: string, report: unknown): string {
  mkdirSync(REPORTS, { recursive: true });
  const rounded = (_: string, value: unknown) =>
    typeof value === 'number' ? Number(value.toPrecision(6)) : value;
  writeFileSync(path.join(REPORTS, file), `${JSON.stringify(report, rounded, 2)}\n`);
  return `reports/${file}`;
}

/** An argument of a bench. @throws InvalidArgumentError */
export function wholeNumber(text: string): number {
  if (/^[1-9]\d*$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number above 0.');
}

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';

/** How a command ended: its exit code, or the signal that killed it. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Where an output of the command goes; a number is an open file descriptor of this process. */
export type Output = 'pipe' | 'inherit' | 'ignore' | number;

export interface TetherOptions {
  /** The whole environment of the command. */
  readonly env: NodeJS.ProcessEnv;
  /** @default the working directory of this process */
  readonly cwd?: string;
  /** @default 'inherit' */
  readonly stdout?: Output;
  /** @default 'inherit' */
  readonly stderr?: Output;
  /** From SIGTERM to SIGKILL, in milliseconds. @default 5000, enough for a program that holds no unfinished work */
  readonly graceMs?: number;
}

export interface TetheredProcess {
  /** Of the command itself, not of the process between. */
  readonly pid: number;
  /** Null unless the output is `pipe`; a pipe that nobody reads blocks the command when it is full. */
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  /** Fulfilled when the command and everything that it started are gone; never rejected. */
  readonly exited: Promise<Exit>;
  /** SIGTERM, then SIGKILL after the grace; waits for the end. It may be called again, and after the end. */
  stop(): Promise<Exit>;
  /** Sends a signal to the command alone. @default 'SIGKILL' */
  kill(signal?: NodeJS.Signals): void;
}

/**
 * The program of the process between. It is text and not a module, because it must run from source under tsx, compiled,
 * and under jest, whose children understand no TypeScript.
 *
 * Its channel to the parent is the tether: the kernel closes it when the parent ends in whatever way, SIGKILL included.
 * Its last act is SIGKILL to its own process group, so that nothing that the command has started outlives it.
 */
const TETHER_PROGRAM = `
const { spawn } = require('node:child_process');
const endGroup = () => process.kill(-process.pid, 'SIGKILL');
const report = (message, then) => (process.connected ? process.send(message, then) : then?.());
const begin = ({ command, args, env, cwd, graceMs }) => {
  const child = spawn(command, args, { env, cwd, stdio: ['ignore', 'inherit', 'inherit'] });
  let ending = false;
  const end = () => {
    if (ending) return;
    ending = true;
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), graceMs);
  };
  child.once('spawn', () => report({ kind: 'started', pid: child.pid }));
  child.once('error', (error) => report({ kind: 'failed', message: error.message }, endGroup));
  child.once('exit', (code, signal) => report({ kind: 'exited', code, signal }, endGroup));
  process.once('message', end);
  process.once('disconnect', end);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, end);
};
process.once('message', begin);
`;

type Report =
  | { readonly kind: 'started'; readonly pid: number }
  | { readonly kind: 'failed'; readonly message: string }
  | ({ readonly kind: 'exited' } & Exit);

/**
 * Starts a command that ends when this process ends, also by SIGKILL, and that a Ctrl-C in the terminal does not reach:
 * it runs in a session of its own, so that the parent decides in which order its children stop.
 *
 * @throws Error when the command can't be started
 */
export async function spawnTethered(
  command: string,
  args: readonly string[],
  options: TetherOptions,
): Promise<TetheredProcess> {
  const { env, cwd = process.cwd(), graceMs = 5_000 } = options;
  const tether = spawn(process.execPath, ['-e', TETHER_PROGRAM], {
    // The command's environment travels over the channel; options such as --inspect are not for the process between.
    env: { ...process.env, NODE_OPTIONS: '' },
    stdio: ['ignore', options.stdout ?? 'inherit', options.stderr ?? 'inherit', 'ipc'],
    detached: true,
  });
  let exit: Exit | undefined;
  tether.on('message', (report: Report) => {
    if (report.kind === 'exited') exit = { code: report.code, signal: report.signal };
  });
  const started = once(tether, 'message') as Promise<[Report]>;
  // Both: Node may report the end of a process before it has read the last message from it.
  const gone = Promise.all([once(tether, 'exit'), once(tether, 'disconnect')]).then(() => {
    if (exit === undefined) sweepGroup(tether);
    return exit ?? ({ code: null, signal: 'SIGKILL' } as const);
  });
  tether.send({ command, args, env, cwd, graceMs });

  const first = await Promise.race([started.then(([report]) => report), gone.then(() => null)]);
  if (first?.kind !== 'started') {
    await gone;
    throw new Error(`can't start ${command}: ${first?.kind === 'failed' ? first.message : 'it was killed'}`);
  }
  const { pid } = first;
  let ended = false;
  const exited = gone.finally(() => (ended = true));
  return {
    pid,
    stdout: tether.stdout,
    stderr: tether.stderr,
    exited,
    async stop() {
      // A failure to send means that the channel is closed already: the end is under way.
      if (tether.connected) tether.send('stop', () => undefined);
      return exited;
    },
    kill(signal = 'SIGKILL') {
      if (!ended) signalProcess(pid, signal);
    },
  };
}

/** Kills the command where the process between was killed itself, before it could end its group. */
function sweepGroup(tether: ChildProcess): void {
  if (tether.pid !== undefined) signalProcess(-tether.pid, 'SIGKILL');
}

function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // ESRCH: it is gone, which is what a caller wants to reach.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Enough for the last words of a program that dies, and bounded however much it has written before. */
const TAIL_CHARACTERS = 4_096;

/**
 * Reads a program's outputs to their end: a pipe that nobody reads would block the program.
 *
 * @returns what tells the last lines, of up to 4 KiB, that are not empty
 */
export function keepLastLines(...outputs: readonly (Readable | null)[]): (count: number) => string {
  let text = '';
  for (const output of outputs) {
    output?.setEncoding('utf8').on('data', (chunk: string) => {
      text = (text + chunk).slice(-TAIL_CHARACTERS);
    });
  }
  return (count) => lastLines(text, count);
}

/** The last lines of a file that are not empty; none where it can't be read. */
export async function lastLinesOf(file: string, count: number): Promise<string> {
  return lastLines(await readFile(file, 'utf8').catch(() => ''), count);
}

function lastLines(text: string, count: number): string {
  const lines = text.slice(-TAIL_CHARACTERS).split('\n');
  return lines
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
    .slice(-count)
    .join('\n');
}

/**
 * Waits for Ctrl-C, SIGTERM, or the terminal to go away, so that what was started can be ended in order. A second one ends
 * the process at once, as it does without a listener; what is tethered ends with it.
 */
export function interruption(): { readonly happened: Promise<unknown>; pending(): boolean } {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      controller.abort();
    });
  }
  return { happened: once(controller.signal, 'abort'), pending: () => controller.signal.aborted };
}

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';

/** How a command ended: its exit code, or the signal that killed it. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Where an output of the command goes; a number is an open file descriptor of this process. */
type Output = 'pipe' | 'inherit' | 'ignore' | number;

export interface TetherOptions {
  /** The whole environment of the command. */
  readonly env: NodeJS.ProcessEnv;
  /** @default 'inherit', as for the other output */
  readonly stdout?: Output;
  readonly stderr?: Output;
  /** From SIGTERM to SIGKILL, in milliseconds. @default 5000, enough for a program that holds no unfinished work */
  readonly graceMs?: number;
}

export interface TetheredProcess {
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
 * The program that watches over a command. It is text and not a module, because it must run from source under tsx, compiled,
 * and under jest, whose children understand no TypeScript.
 *
 * Its standard input is the tether: the kernel closes it when the parent ends in whatever way, SIGKILL included. Then it ends
 * the command and everything that it has started.
 */
const WATCH_PROGRAM = `
const [, pid, graceMs] = process.argv;
const end = (signal) => {
  try { process.kill(-pid, signal); } catch { process.exit(); }
};
process.stdin.resume().on('end', () => {
  end('SIGTERM');
  setTimeout(() => end('SIGKILL'), Number(graceMs));
});
`;

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
  const { env, graceMs = 5_000 } = options;
  const outputs = [options.stdout ?? 'inherit', options.stderr ?? 'inherit'] as const;
  const child = spawn(command, args, { env, detached: true, stdio: ['ignore', ...outputs] });
  const { pid } = child;
  if (pid === undefined) {
    const [error] = (await once(child, 'error')) as [Error];
    throw new Error(`can't start ${command}: ${error.message}`);
  }
  const watch = spawn(process.execPath, ['-e', WATCH_PROGRAM, String(pid), String(graceMs)], {
    env: {},
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watch.unref();
  if (watch.stdin instanceof Socket) watch.stdin.unref();
  let ended = false;
  const exited = once(child, 'exit').then(([code, signal]: unknown[]) => {
    ended = true;
    // What it has started, and the watch, go with it.
    signalProcess(-pid, 'SIGKILL');
    watch.kill('SIGKILL');
    return { code, signal } as Exit;
  });
  const kill = (signal: NodeJS.Signals = 'SIGKILL'): void => {
    if (!ended) signalProcess(pid, signal);
  };
  const end = (): Promise<Exit> => {
    kill('SIGTERM');
    const timer = setTimeout(kill, graceMs);
    return exited.finally(() => {
      clearTimeout(timer);
    });
  };
  let stopped: Promise<Exit> | undefined;
  const stop = () => (stopped ??= end());
  return { pid, stdout: child.stdout, stderr: child.stderr, exited, stop, kill };
}

function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // ESRCH: it is gone, which is what a caller wants to reach.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Of the beginning and of the end, each: enough for the words of a program that dies, however much it has written between. */
const KEPT_CHARACTERS = 4_096;

/**
 * Reads a program's outputs to their end: a pipe that nobody reads would block the program. Both ends are kept, because some
 * programs give the reason first and then a long stack (a panic in Go), and others give it last.
 *
 * @returns what tells the first and the last lines, half of `count` each, once the program has ended: they may come through
 *   its pipes later
 */
export function keepWords(...pipes: readonly (Readable | null)[]): (count: number) => Promise<string> {
  const outputs = pipes.filter((pipe) => pipe !== null);
  let head = '';
  let tail = '';
  for (const output of outputs) {
    output.setEncoding('utf8').on('data', (chunk: string) => {
      const room = KEPT_CHARACTERS - head.length;
      head += chunk.slice(0, room);
      tail = (tail + chunk.slice(room)).slice(-KEPT_CHARACTERS);
    });
  }
  return async (count) => {
    await Promise.all(outputs.map((output) => finished(output)));
    const lines = (head + tail).split(/\s*\n/).filter((line) => line !== '');
    if (lines.length <= count) return lines.join('\n');
    const half = Math.ceil(count / 2);
    return [...lines.slice(0, half), '…', ...lines.slice(half - count)].join('\n');
  };
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

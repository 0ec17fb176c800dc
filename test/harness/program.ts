import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { eventually } from '../../tools/lib/eventually';
import { temporal } from './temporal';

const STARTER = path.resolve(__dirname, '../../dist/starter.js');

interface ProgramOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly stdin?: string;
}

/** A program as a process of its own. */
export class Program {
  /** Everything that was written so far. */
  stdout = '';
  stderr = '';
  private readonly closed: Promise<unknown>;
  private isClosed = false;
  private readonly child: ChildProcess;

  constructor(command: string, args: readonly string[], { stdin = '', ...options }: ProgramOptions = {}) {
    const child = spawn(command, args, options);
    child.stdout.on('data', (chunk: Buffer) => (this.stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
    // A program may end without reading it.
    child.stdin.on('error', () => undefined).end(stdin);
    this.child = child;
    this.closed = once(child, 'close').finally(() => (this.isClosed = true));
    // It rejects where the program can't be started.
    this.closed.catch(() => undefined);
  }

  /** The starter on the shared server. It knows no variable of the agent service. */
  static startCli(args: readonly string[], env: NodeJS.ProcessEnv, stdin?: string): Program {
    const isolated = { ...temporal().env, AGENT_API_KEY: undefined, AGENT_API_BASE_URL: undefined, ...env };
    return new Program(process.execPath, [STARTER, ...args], { env: isolated, ...(stdin && { stdin }) });
  }

  /** Waits for its end, and for its last words. */
  async waitForEnd() {
    await this.closed;
    const { exitCode: code, signalCode: signal } = this.child;
    return { code, signal, stdout: this.stdout, stderr: this.stderr };
  }

  /** Waits until it has said something, and returns it. @throws Error when the process ends before */
  async waitForOutput(words: RegExp): Promise<RegExpExecArray> {
    const find = () => words.exec(this.stdout) ?? words.exec(this.stderr);
    const found = await eventually(`the program says ${String(words)}`, () => find() ?? this.isClosed);
    if (found === true) throw new Error(`it never said ${String(words)}:\n${this.stdout}${this.stderr}`);
    return found;
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Closes the reader's end of stdout, as `head` does. */
  closeStdout(): void {
    this.child.stdout?.destroy();
  }
}

/** Runs a program that must succeed. @returns what it printed @throws Error with all that it wrote, when it doesn't */
export async function mustRun(...program: ConstructorParameters<typeof Program>): Promise<string> {
  const { code, signal, stdout, stderr } = await new Program(...program).waitForEnd();
  if (code === 0) return stdout;
  const [command, args] = program;
  throw new Error(`${command} ${args.join(' ')} ended with ${signal ?? code}:\n${stdout}${stderr}`);
}

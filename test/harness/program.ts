import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { eventually } from '../../tools/lib/eventually';
import { temporal } from './temporal';

const CLI = path.resolve(__dirname, '../../dist/starter.js');

interface ProgramOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly stdin?: string;
}

/** A program that runs as a separate process. */
export class Program {
  /** The complete output so far. */
  stdout = '';
  stderr = '';
  private readonly closed: Promise<unknown>;
  private isClosed = false;
  private readonly child: ChildProcess;

  constructor(command: string, args: readonly string[], { stdin = '', ...options }: ProgramOptions = {}) {
    const child = spawn(command, args, options);
    child.stdout.on('data', (chunk: Buffer) => (this.stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
    // A program may end without reading stdin.
    child.stdin.on('error', () => undefined).end(stdin);
    this.child = child;
    this.closed = once(child, 'close').finally(() => (this.isClosed = true));
    // The promise rejects if the program can't be started. The rejection reaches the test in `waitForEnd`.
    this.closed.catch(() => undefined);
  }

  /** Starts the CLI on the shared Temporal server, without the variables of the agent service. */
  static startCli(args: readonly string[], env: NodeJS.ProcessEnv, stdin?: string): Program {
    const isolated = { ...temporal().env, AGENT_API_KEY: undefined, AGENT_API_BASE_URL: undefined, ...env };
    return new Program(process.execPath, [CLI, ...args], { env: isolated, ...(stdin && { stdin }) });
  }

  /** Waits until the process has ended and its complete output was read. */
  async waitForEnd() {
    await this.closed;
    const { exitCode: code, signalCode: signal } = this.child;
    return { code, signal, stdout: this.stdout, stderr: this.stderr };
  }

  /** Waits until the output matches a pattern, and returns the match. @throws Error if the process ends before */
  async waitForOutput(pattern: RegExp): Promise<RegExpExecArray> {
    const find = () => pattern.exec(this.stdout) ?? pattern.exec(this.stderr);
    const found = await eventually(`the output matches ${String(pattern)}`, () => find() ?? this.isClosed);
    if (found === true)
      throw new Error(
        `The program ended without output that matches ${String(pattern)}:\n${this.stdout}${this.stderr}`,
      );
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

/** Runs a program that must succeed. @returns stdout @throws Error with the complete output if the program fails */
export async function mustRun(...program: ConstructorParameters<typeof Program>): Promise<string> {
  const { code, signal, stdout, stderr } = await new Program(...program).waitForEnd();
  if (code === 0) return stdout;
  const [command, args] = program;
  throw new Error(`${command} ${args.join(' ')} ended with ${signal ?? code}:\n${stdout}${stderr}`);
}

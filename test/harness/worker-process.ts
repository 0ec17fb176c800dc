import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { eventually } from '../../tools/lib/eventually';

export const ROOT = path.resolve(__dirname, '../..');

/** How a process ended: its exit code, or the signal that killed it. */
interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** One line of the log. */
export type LogLine = { readonly level: string; readonly msg: string } & Readonly<Record<string, unknown>>;

/** The compiled worker as a process of its own, as `npm start` runs it. */
export class WorkerProcess {
  /** Everything that was written so far. */
  stdout = '';
  stderr = '';
  readonly pid: number;
  readonly exited: Promise<Exit>;
  private hasOutputEnded = false;

  private constructor(private readonly child: ChildProcess) {
    this.pid = child.pid ?? NaN;
    this.exited = once(child, 'exit').then(([code, signal]: unknown[]) => ({ code, signal }) as Exit);
    child.stdout?.on('data', (chunk: Buffer) => (this.stdout += chunk.toString()));
    // The pipe ends after the last line of the log.
    child.stdout?.on('end', () => (this.hasOutputEnded = true));
    child.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
  }

  /**
   * @param env on top of a bare environment: nothing of the machine's own Temporal or agent service gets in
   * @param node the command that runs the program
   */
  static async start(
    env: NodeJS.ProcessEnv,
    program = path.join(ROOT, 'dist/worker.js'),
    [node, ...words]: readonly [string, ...string[]] = [process.execPath],
  ): Promise<WorkerProcess> {
    const bare = {
      PATH: process.env.PATH,
      // No profile: the file does not exist.
      TEMPORAL_CONFIG_FILE: path.join(ROOT, '.cache/no-temporal-profile/temporal.toml'),
      FOLLOW_UP_HEALTH_ADDRESS: '127.0.0.1:0',
      FOLLOW_UP_METRICS_ADDRESS: 'off',
    };
    const child = spawn(node, [...words, program], {
      env: { ...bare, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const worker = new WorkerProcess(child);
    await once(child, 'spawn');
    return worker;
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Ends it in whatever state it is. */
  async stop(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exited;
  }

  log(): LogLine[] {
    return this.stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as LogLine);
  }

  /** Waits for a line whose message matches. @throws Error with all that was said, when none comes */
  async waitForLog(message: RegExp): Promise<LogLine> {
    const find = () => this.log().find(({ msg }) => message.test(msg));
    const line = await eventually(`the worker says ${String(message)}`, () => find() ?? this.hasOutputEnded);
    if (line === true) throw new Error(`never said ${String(message)}:\n${this.stdout}${this.stderr}`);
    return line;
  }

  /** Asks the health server. */
  async fetchHealth(url: '/healthz' | '/readyz'): Promise<{ status: number; body: { reasons?: string[] } }> {
    const { health } = await this.waitForLog(/^listening$/);
    const response = await fetch(`http://${String(health)}${url}`);
    return { status: response.status, body: (await response.json()) as { reasons?: string[] } };
  }

  /** Waits until `/readyz` answers so, and returns the reasons that it gives. */
  async waitForReadyz(status: number): Promise<string[]> {
    const { body } = await eventually(`/readyz answers ${status}`, () => this.fetchHealth('/readyz'), {
      until: (answer) => answer.status === status,
    });
    return body.reasons ?? [];
  }
}

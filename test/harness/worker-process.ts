import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { eventually } from '../../tools/lib/eventually';

export const ROOT = path.resolve(__dirname, '../..');

/** The exit code of a process, or the signal that killed it. */
interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The command that runs Node, for example with a wrapper in front of Node. */
export type NodeCommand = readonly [string, ...string[]];

/** A line of the worker's log. */
export type LogLine = { readonly level: string; readonly msg: string } & Readonly<Record<string, unknown>>;

/** The compiled worker as a separate process, as `npm start` runs it. */
export class WorkerProcess {
  /** The complete output so far. */
  stdout = '';
  stderr = '';
  readonly pid: number;
  readonly exited: Promise<Exit>;
  private hasOutputEnded = false;

  private constructor(private readonly child: ChildProcess) {
    this.pid = child.pid ?? NaN;
    this.exited = once(child, 'exit').then(([code, signal]: unknown[]) => ({ code, signal }) as Exit);
    child.stdout?.on('data', (chunk: Buffer) => (this.stdout += chunk.toString()));
    // The stream ends after the log's last line.
    child.stdout?.on('end', () => (this.hasOutputEnded = true));
    child.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
  }

  /**
   * @param env the variables of the process. PATH is the only variable added from this process, so that no test uses the
   * machine's own Temporal server or agent service.
   * @param node the command that runs the program
   */
  static async start(
    env: NodeJS.ProcessEnv,
    program = path.join(ROOT, 'dist/worker.js'),
    [node, ...nodeArgs]: NodeCommand = [process.execPath],
  ): Promise<WorkerProcess> {
    const baseEnv = {
      PATH: process.env.PATH,
      // The file does not exist, so no profile is used.
      TEMPORAL_CONFIG_FILE: path.join(ROOT, '.cache/no-temporal-profile/temporal.toml'),
      FOLLOW_UP_HEALTH_ADDRESS: '127.0.0.1:0',
      FOLLOW_UP_METRICS_ADDRESS: 'off',
    };
    const child = spawn(node, [...nodeArgs, program], {
      env: { ...baseEnv, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const worker = new WorkerProcess(child);
    await once(child, 'spawn');
    return worker;
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Kills the process in any state, and waits for its end. */
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

  /** Waits for a log line whose message matches. @throws Error with the complete output if the log ends without such a line */
  async waitForLog(message: RegExp): Promise<LogLine> {
    const find = () => this.log().find(({ msg }) => message.test(msg));
    const line = await eventually(
      `a log line matches ${String(message)}`,
      () => find() ?? this.hasOutputEnded,
    );
    if (line === true)
      throw new Error(
        `The worker ended without a log line that matches ${String(message)}:\n${this.stdout}${this.stderr}`,
      );
    return line;
  }

  /** Requests a URL of the worker's health server. */
  async fetchHealth(url: '/healthz' | '/readyz'): Promise<{ status: number; body: { reasons?: string[] } }> {
    const { health } = await this.waitForLog(/^listening$/);
    const response = await fetch(`http://${String(health)}${url}`);
    return { status: response.status, body: (await response.json()) as { reasons?: string[] } };
  }

  /** Waits until `/readyz` returns a status, and returns the reasons in the response. */
  async waitForReadyz(status: number): Promise<string[]> {
    const { body } = await eventually(`/readyz returns ${status}`, () => this.fetchHealth('/readyz'), {
      until: (response) => response.status === status,
    });
    return body.reasons ?? [];
  }
}

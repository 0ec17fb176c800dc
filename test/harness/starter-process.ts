import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { eventually } from './eventually';
import { temporal } from './temporal';

const PROGRAM = path.resolve(__dirname, '../../dist/starter.js');

/** The starter as a process of its own, on the shared server. It knows no variable of the agent service. */
export class StarterProcess {
  stdout = '';
  stderr = '';

  private constructor(private readonly child: ReturnType<typeof spawn>) {}

  static start(args: readonly string[], env: NodeJS.ProcessEnv, stdin = ''): StarterProcess {
    const isolated = { ...temporal().env, AGENT_API_KEY: undefined, AGENT_API_BASE_URL: undefined, ...env };
    const child = spawn(process.execPath, [PROGRAM, ...args], { env: isolated, stdio: 'pipe' });
    const starter = new StarterProcess(child);
    child.stdout.on('data', (chunk: Buffer) => (starter.stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (starter.stderr += chunk.toString()));
    child.stdin.end(stdin);
    return starter;
  }

  /** Waits for its end. */
  async ended() {
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'close');
    const { exitCode: code, signalCode: signal } = this.child;
    return { code, signal, stdout: this.stdout, stderr: this.stderr };
  }

  /** Waits until stderr holds `text`. @throws Error when the process ends before */
  async says(text: string | RegExp): Promise<void> {
    const said = (): boolean =>
      typeof text === 'string' ? this.stderr.includes(text) : text.test(this.stderr);
    await eventually(`the starter says ${String(text)}`, () => said() || this.child.exitCode !== null);
    if (!said())
      throw new Error(`the starter ended and did not say ${String(text)}; it said:\n${this.stderr}`);
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Closes the reader's end of stdout, as `head` does. */
  closeStdout(): void {
    this.child.stdout?.destroy();
  }
}

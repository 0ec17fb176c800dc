import { execFile } from 'node:child_process';
import { chmod } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { type DevServer, startDevServer, stripTemporalEnv } from '../../dev/dev-server';
import { freePorts } from '../../dev/free-ports';
import { version } from '../../package.json';
import { type Sandbox, startSandbox } from '../../sandbox';
import type { Ended } from '../cli/command';
import { VARIABLES } from '../harness/temporal';
import { ROOT, WorkerProcess } from '../harness/worker-process';

export const artifact = (name: 'client' | 'plugin' | 'sandbox' | 'worker'): string =>
  path.join(ROOT, `artifacts/agent-follow-up-${name}-${version}.tgz`);

/** Runs a program to its end, whatever that is. */
export async function run(
  command: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env?: NodeJS.ProcessEnv },
): Promise<Ended> {
  try {
    return { code: 0, ...(await promisify(execFile)(command, args, options)) };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: unknown; stdout?: string; stderr?: string };
    if (typeof code !== 'number') throw error;
    return { code, stdout: stdout ?? '', stderr: stderr ?? '' };
  }
}

/** Runs a program that must succeed. @throws Error with all that it wrote, when it doesn't */
export async function mustRun(...[command, args, options]: Parameters<typeof run>): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, options);
  if (code === 0) return stdout;
  throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${stdout}${stderr}`);
}

/**
 * What stands behind a door in production: a Temporal server, an agent service, and the worker artefact, unpacked into a folder
 * that nobody may write. The task queues are the default ones, as in the examples.
 */
export class Ground {
  private readonly workers: WorkerProcess[] = [];

  private constructor(
    readonly server: DevServer,
    readonly sandbox: Sandbox,
    /** The environment of a caller. */
    readonly env: NodeJS.ProcessEnv,
    private readonly folder: string,
  ) {}

  /** @param folder for the worker artefact */
  static async open(folder: string): Promise<Ground> {
    const cli = process.env[VARIABLES.cli] ?? '';
    const [httpPort = 0] = await freePorts(1);
    // Longer than the first interval between polls, so that an example sees the job active.
    const sandbox = await startSandbox({ seedJobs: false, turnMs: 6_000, messagesPerHour: null });
    const server = await startDevServer({ cli, httpPort, searchAttributes: true });
    // The user nobody works in it.
    await chmod(folder, 0o755);
    await mustRun('tar', ['-xzf', artifact('worker')], { cwd: folder });
    await mustRun('chmod', ['-R', 'a-w', 'package'], { cwd: folder });
    const env = {
      ...stripTemporalEnv(process.env),
      TEMPORAL_ADDRESS: server.address,
      TEMPORAL_HTTP_URL: `http://127.0.0.1:${httpPort}`,
      PATH: `${path.dirname(cli)}:${process.env.PATH ?? ''}`,
    };
    return new Ground(server, sandbox, env, folder);
  }

  /** Starts the unpacked worker, as the user nobody where this process may choose, and waits until it works. */
  async startWorker(node = process.execPath): Promise<WorkerProcess> {
    const nobody = ['--reuid=65534', '--regid=65534', '--clear-groups', '--no-new-privs'];
    const worker = await WorkerProcess.start(
      {
        TEMPORAL_ADDRESS: this.server.address,
        AGENT_API_BASE_URL: this.sandbox.baseUrl,
        AGENT_API_KEY: this.sandbox.apiKey,
        HOME: '/nonexistent',
        // Whatever wants to write a file finds no place for it.
        TMPDIR: this.worker('dist'),
      },
      this.worker('dist/worker.js'),
      process.getuid?.() === 0 ? ['setpriv', ...nobody, node] : [node],
    );
    this.workers.push(worker);
    await worker.says(/^ready$/);
    return worker;
  }

  /** A path in the unpacked worker artefact. */
  worker(file: string): string {
    return path.join(this.folder, 'package', file);
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.stop()));
    await this.server.stop();
    await this.sandbox.close();
    // Of what is read-only only root may remove something.
    await mustRun('chmod', ['-R', 'u+w', 'package'], { cwd: this.folder });
  }
}

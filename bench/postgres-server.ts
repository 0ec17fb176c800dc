import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time';
import { type DevServerOptions, DYNAMIC_CONFIG } from '../dev/dev-server';
import { expectFreePort } from '../dev/free-ports';
import { Postgres } from './postgres';
import { keepWords, spawnTethered, type TetheredProcess } from '../dev/tether';

/** The same release as the dev server's. */
export const SERVER_VERSION = '1.32.0';

const PROGRAMS = path.resolve(__dirname, `../.cache/temporal-server/${SERVER_VERSION}`);

const HOST = '127.0.0.1';
const RETENTION_MS = 7 * 86_400_000;

/** It joins its own cluster first, which takes some seconds; after a crash of its database it waits for that too. */
const START_LIMIT_MS = 90_000;
const STOP_GRACE_MS = 20_000;
const run = promisify(execFile);

/** The server settings of a bench or a test. */
export type PostgresServerOptions = Pick<DevServerOptions, 'metricsPort' | 'dynamicConfig'>;

/**
 * The Temporal server that production runs, all services in one process, on a PostgreSQL of its own. It is configured as the
 * server's image is, by the environment (`deploy/compose.yaml`), and has the namespace `default`.
 */
export class PostgresServer {
  readonly namespace = 'default';
  readonly uiUrl = null;
  private process: TetheredProcess | undefined;

  private constructor(
    readonly postgres: Postgres,
    readonly port: number,
    private readonly folder: string,
    private readonly env: NodeJS.ProcessEnv,
  ) {}

  /** @param say progress, for people: the first build takes minutes */
  static async open(
    say: (line: string) => void,
    options: PostgresServerOptions = {},
  ): Promise<PostgresServer> {
    await build(say);
    const postgres = await Postgres.open();
    const folder = await mkdtemp(path.join(os.tmpdir(), 'agent-follow-up-server-'));
    try {
      await makeDatabases(postgres);
      const dynamicConfig = path.join(folder, 'dynamic-config.yaml');
      await writeFile(dynamicConfig, dynamicConfigOf({ ...DYNAMIC_CONFIG, ...options.dynamicConfig }));
      const [port = 0, ...others] = await lowPorts(1 + PORTS.length);
      const env = {
        PATH: process.env.PATH,
        DB: 'postgres12',
        POSTGRES_SEEDS: postgres.host,
        DB_PORT: String(postgres.port),
        POSTGRES_USER: postgres.user,
        POSTGRES_PWD: postgres.password,
        BIND_ON_IP: HOST,
        TEMPORAL_BROADCAST_ADDRESS: HOST,
        DYNAMIC_CONFIG_FILE_PATH: dynamicConfig,
        LOG_LEVEL: 'error',
        FRONTEND_GRPC_PORT: String(port),
        ...Object.fromEntries(PORTS.map((name, index) => [name, String(others[index])])),
        ...(options.metricsPort === undefined
          ? {}
          : { PROMETHEUS_ENDPOINT: `${HOST}:${options.metricsPort}` }),
      };
      const server = new PostgresServer(postgres, port, folder, env);
      await server.start();
      return server;
    } catch (error) {
      await postgres.close();
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  get address(): string {
    return `${HOST}:${this.port}`;
  }

  get pid(): number {
    if (this.process === undefined) throw new Error('the Temporal server does not run');
    return this.process.pid;
  }

  /** Starts it, again on the same database and ports, and waits until it answers for its namespace. */
  async start(): Promise<void> {
    const started = await spawnTethered(path.join(PROGRAMS, 'server'), ['--allow-no-auth', 'start'], {
      env: this.env,
      stdout: 'pipe',
      stderr: 'pipe',
      graceMs: STOP_GRACE_MS,
    });
    this.process = started;
    const words = keepWords(started.stdout, started.stderr);
    const giveUpAt = Date.now() + START_LIMIT_MS;
    const end = { come: false };
    void started.exited.then(() => (end.come = true));
    while (!(await hasNamespace(this.address, this.namespace))) {
      if (!end.come && Date.now() < giveUpAt) await sleep(200);
      else {
        await started.stop();
        throw new Error(`the Temporal server on PostgreSQL did not start. It said:\n${await words(15)}`);
      }
    }
  }

  /** A crash of the server alone. */
  async kill(): Promise<void> {
    this.process?.kill('SIGKILL');
    await this.process?.exited;
  }

  /** Ends both, and forgets everything. */
  async stop(): Promise<void> {
    await this.process?.stop();
    await this.postgres.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** The processes of server and database: the CPU time of both together is what a follow-up costs. */
  async pids(): Promise<number[]> {
    const { pid: postmaster } = this.postgres;
    const all = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const parents = await Promise.all(all.map(async (pid) => [Number(pid), await parentOf(pid)] as const));
    const backends = parents.filter(([, parent]) => parent === postmaster).map(([pid]) => pid);
    return [this.pid, postmaster, ...backends];
  }
}

/** The ports of the services, free ones, so that several servers run on a machine. */
const PORTS = [
  'FRONTEND_HTTP_PORT',
  'FRONTEND_MEMBERSHIP_PORT',
  'MATCHING_GRPC_PORT',
  'MATCHING_MEMBERSHIP_PORT',
  'HISTORY_GRPC_PORT',
  'HISTORY_MEMBERSHIP_PORT',
  'WORKER_GRPC_PORT',
  'WORKER_MEMBERSHIP_PORT',
] as const;

/** The server keeps its ports as `smallint`, up to 32,767; those that a system gives away by itself begin above. */
const LOWEST_PORT = 20_000;
const HIGHEST_PORT = 32_767;

/** Free ports that fit the server's database. */
async function lowPorts(count: number): Promise<number[]> {
  const found = new Set<number>();
  while (found.size < count) {
    const port = randomInt(LOWEST_PORT, HIGHEST_PORT + 1);
    const isFree = await expectFreePort(port).then(
      () => true,
      () => false,
    );
    if (isFree) found.add(port);
  }
  return [...found];
}

/** Builds server and schema tool with Go, once. */
async function build(say: (line: string) => void): Promise<void> {
  if (existsSync(path.join(PROGRAMS, 'server')) && existsSync(path.join(PROGRAMS, 'sql'))) return;
  say(`building the Temporal server ${SERVER_VERSION} with Go; this takes some minutes`);
  const packages = ['cmd/server', 'cmd/tools/sql'].map(
    (name) => `go.temporal.io/server/${name}@v${SERVER_VERSION}`,
  );
  await run('go', ['install', ...packages], { env: { ...process.env, GOBIN: PROGRAMS }, cwd: os.tmpdir() });
}

/** As the server's operators do it: a database each for histories and visibility, each with its schema. */
async function makeDatabases({ host, port, user, password }: Postgres): Promise<void> {
  for (const [database, schema] of [
    ['temporal', 'temporal'],
    ['temporal_visibility', 'visibility'],
  ] as const) {
    const tool = (...words: string[]) =>
      run(path.join(PROGRAMS, 'sql'), [
        ...['--plugin', 'postgres12', '--ep', host, '-p', String(port), '-u', user, '--pw', password],
        ...['--db', database, ...words],
      ]);
    await tool('create');
    await tool('setup-schema', '-v', '0.0');
    await tool('update-schema', '--schema-name', `postgresql/v12/${schema}`);
  }
}

/** The file is YAML, and so is JSON. */
function dynamicConfigOf(settings: NonNullable<DevServerOptions['dynamicConfig']>): string {
  const entries = Object.entries(settings).map(([name, value]) => [name, [{ value }]]);
  return JSON.stringify(Object.fromEntries(entries));
}

/** True when the server knows the namespace; makes it where it is not there yet. */
async function hasNamespace(address: string, namespace: string): Promise<boolean> {
  const channelArgs = { 'grpc.enable_http_proxy': 0 };
  const connection = Connection.lazy({ address, channelArgs, interceptors: [] });
  const { workflowService } = connection;
  try {
    return await connection.withDeadline(Date.now() + 2_000, async () => {
      await workflowService
        .registerNamespace({ namespace, workflowExecutionRetentionPeriod: msToTs(RETENTION_MS) })
        .catch((error: unknown) => {
          if (!String(error).includes('already exists')) throw error;
        });
      await workflowService.describeNamespace({ namespace });
      // Other services learn of a namespace some seconds later; a workflow asks them.
      await workflowService.countWorkflowExecutions({ namespace });
      await workflowService.describeTaskQueue({ namespace, taskQueue: { name: 'anything' } });
      return true;
    });
  } catch {
    // Whatever it is, it is "not yet"; the caller has a deadline and the server's own words.
    return false;
  } finally {
    await connection.close();
  }
}

/** 0 where it has just ended. */
async function parentOf(pid: string): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1] ?? 0);
}

import { open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { SEARCH_ATTRIBUTES } from '../src/core/names';
import { expectFreePort, freePorts } from './free-ports';
import { lastLinesOf, OutputTail } from './output-tail';
import { NO_ENV_FILE, stripTemporalEnv } from './temporal-env';
import { type Exit, spawnTethered, type TetheredProcess } from './tether';

export interface DevServerOptions {
  /** The executable of the Temporal CLI; see `findTemporalCli`. */
  readonly cli: string;
  /** A SQLite file that outlives the server; made where it is not there yet. @default in memory */
  readonly databaseFile?: string;
  /** @default false */
  readonly webUi?: boolean;
  /** For a restart at the address that clients know. @default a free port */
  readonly port?: number;
  /** As `port`; only with `webUi`. */
  readonly uiPort?: number;
  /** Where the server serves its own Prometheus metrics, as `/metrics`. @default a free port of its choice */
  readonly metricsPort?: number;
  /** The server's settings by name, added to those that the project needs. */
  readonly dynamicConfig?: Readonly<Record<string, string | number | boolean>>;
  /** Registers the project's search attributes at the start, as an operator would with `starter setup`. @default false */
  readonly searchAttributes?: boolean;
  /** All that the server prints is added to this file. @default kept nowhere but in the error of a failed start */
  readonly logFile?: string;
}

export interface DevServer {
  /** `127.0.0.1:PORT` of the gRPC front end. */
  readonly address: string;
  readonly port: number;
  /** Null without the Web UI, as is the port. */
  readonly uiUrl: string | null;
  readonly uiPort: number | null;
  readonly namespace: string;
  readonly pid: number;
  /** Fulfilled when the server is gone, whoever ended it. */
  readonly exited: Promise<Exit>;
  /** Ends the server in good order and waits until it is gone: about a second. */
  stop(): Promise<void>;
  /** SIGKILL to the server, as a crash. */
  kill(): void;
}

const HOST = '127.0.0.1';
const NAMESPACE = 'default';

/** A start takes 1 to 2 s here; a minute is for a cold disk and a machine that builds something at the same time. */
const START_LIMIT_MS = 60_000;

/** One question to a server that may not be there yet. */
const ANSWER_LIMIT_MS = 2_000;

/** The server ends within about a second of SIGTERM; what takes ten has hung. */
const STOP_GRACE_MS = 10_000;

const DYNAMIC_CONFIG = {
  // Per-project limits; implies the priority matcher (source: server 1.31, matching/task_queue_partition_manager.go).
  'matching.enableFairness': true,
  // The server would ask version-info.temporal.io about updates.
  'frontend.enableServerVersionCheck': false,
};

/**
 * Starts a Temporal dev server of our own on 127.0.0.1 that ends with this process, and waits until it answers.
 *
 * @throws Error with the server's own last words when it dies instead, or does not answer within a minute
 */
export async function startDevServer(options: DevServerOptions): Promise<DevServer> {
  // Looked at before the start: another server there would answer in place of ours, until ours has died of it.
  const askedFor = [options.port, options.uiPort].filter((port) => port !== undefined);
  for (const port of askedFor) await expectFreePort(port);
  try {
    return await startOnce(options);
  } catch (error) {
    // Another program took a port between our look and the server's. A second time is no accident.
    if (askedFor.length > 0 || !(error as Error).message.includes('address already in use')) throw error;
    return startOnce(options);
  }
}

async function startOnce(options: DevServerOptions): Promise<DevServer> {
  const [freePort = 0, freeUiPort = 0] = await freePorts(2);
  const port = options.port ?? freePort;
  const uiPort = options.webUi ? (options.uiPort ?? freeUiPort) : null;
  const { logFile } = options;
  // The server writes into the file by itself, so that nothing is lost when this process ends first.
  const log = logFile === undefined ? null : await open(logFile, 'a');
  const server = await spawnTethered(options.cli, serverArguments(options, port, uiPort), {
    env: stripTemporalEnv(process.env),
    stdout: log?.fd ?? 'pipe',
    stderr: log?.fd ?? 'pipe',
    graceMs: STOP_GRACE_MS,
  }).finally(() => log?.close());
  const words = new OutputTail(server.stdout, server.stderr);
  const address = `${HOST}:${port}`;
  const uiUrl = uiPort === null ? null : `http://${HOST}:${uiPort}`;
  try {
    await untilReady(server, address, uiUrl);
  } catch (error) {
    await server.stop();
    const said = logFile === undefined ? words.lines(15) : await lastLinesOf(logFile, 15);
    throw new Error(`the Temporal dev server ${(error as Error).message}. It said:\n${said || '(nothing)'}`, {
      cause: error,
    });
  }
  return {
    address,
    port,
    uiUrl,
    uiPort,
    namespace: NAMESPACE,
    pid: server.pid,
    exited: server.exited,
    async stop() {
      await server.stop();
    },
    kill: () => {
      server.kill('SIGKILL');
    },
  };
}

function serverArguments(options: DevServerOptions, port: number, uiPort: number | null): string[] {
  const dynamicConfig = Object.entries({ ...DYNAMIC_CONFIG, ...options.dynamicConfig });
  return [
    ...['server', 'start-dev', '--ip', HOST, '--port', String(port), '--log-level', 'error'],
    ...['--disable-config-file', '--disable-config-env', '--env-file', NO_ENV_FILE],
    ...(uiPort === null ? ['--headless'] : ['--ui-port', String(uiPort), '--ui-disable-news-fetch']),
    ...(options.metricsPort === undefined ? [] : ['--metrics-port', String(options.metricsPort)]),
    ...(options.databaseFile === undefined ? [] : ['--db-filename', options.databaseFile]),
    ...(options.searchAttributes
      ? SEARCH_ATTRIBUTES.flatMap((name) => ['--search-attribute', `${name}=Keyword`])
      : []),
    ...dynamicConfig.flatMap(([name, value]) => [
      '--dynamic-config-value',
      `${name}=${JSON.stringify(value)}`,
    ]),
  ];
}

/** Asks again and again, until there is an answer, the process is gone, or a minute has passed. */
async function untilReady(server: TetheredProcess, address: string, uiUrl: string | null): Promise<void> {
  const deadline = Date.now() + START_LIMIT_MS;
  const asking = new AbortController();
  const died = server.exited.then(({ code, signal }) => {
    throw new Error(`ended at its start with ${signal ?? `exit code ${code}`}`);
  });
  try {
    while (!(await Promise.race([answers(address, uiUrl, asking.signal), died]))) {
      if (Date.now() > deadline) throw new Error(`did not answer within ${START_LIMIT_MS / 1_000} s`);
      await Promise.race([sleep(50), died]);
    }
  } finally {
    asking.abort();
  }
}

/** True when the namespace and, where there is one, the Web UI answer. */
async function answers(address: string, uiUrl: string | null, ended: AbortSignal): Promise<boolean> {
  // A proxy of the environment is for the outside; gRPC would use it for 127.0.0.1 as well. Without interceptors the
  // SDK does not repeat the question by itself, which would go on after the end of a server that has died.
  const channelArgs = { 'grpc.enable_http_proxy': 0 };
  const connection = Connection.lazy({ address, channelArgs, interceptors: [] });
  const signal = AbortSignal.any([ended, AbortSignal.timeout(ANSWER_LIMIT_MS)]);
  try {
    const describe = () => connection.workflowService.describeNamespace({ namespace: NAMESPACE });
    await connection.withAbortSignal(signal, describe);
    return uiUrl === null || (await fetch(uiUrl, { signal })).ok;
  } catch {
    // Whatever it is, it is "not yet"; the caller has a deadline and the server's own words.
    return false;
  } finally {
    await connection.close();
  }
}

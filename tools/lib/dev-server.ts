import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { SEARCH_ATTRIBUTE_TYPES } from '../../src/core/names';
import { expectFreePort, freePorts } from './free-ports';
import { keepWords, spawnTethered, type TetheredProcess } from './tether';

export interface DevServerOptions {
  /** The executable of the Temporal CLI; see `findTemporalCli`. */
  readonly cli: string;
  /** A SQLite file that outlives the server. @default in memory */
  readonly databaseFile?: string;
  /** @default false */
  readonly webUi?: boolean;
  /** For a restart at the address that clients know. @default a free port */
  readonly port?: number;
  /** Where the server serves its own Prometheus metrics, as `/metrics`. @default a free port of its choice */
  readonly metricsPort?: number;
  /** Where the server answers its HTTP API. @default a free port of its choice */
  readonly httpPort?: number;
  /** The server's settings by name, added to those that the project needs. */
  readonly dynamicConfig?: Readonly<Record<string, string | number | boolean>>;
  /** Registers the project's search attributes at the start, as an operator would with `starter setup`. @default false */
  readonly searchAttributes?: boolean;
}

export interface DevServer extends TetheredProcess {
  /** `127.0.0.1:PORT` of the gRPC front end. */
  readonly address: string;
  readonly port: number;
  /** Null without the Web UI. */
  readonly uiUrl: string | null;
  readonly namespace: string;
}

const HOST = '127.0.0.1';
const NAMESPACE = 'default';

/** A start takes 1 to 2 s here; a minute is for a cold disk and a machine that builds something at the same time. */
const START_LIMIT_MS = 60_000;

/** One question to a server that may not be there yet. */
const ANSWER_LIMIT_MS = 2_000;
/** The server ends within about a second of SIGTERM. */
const STOP_GRACE_MS = 10_000;

/** The settings that the project needs of a server. */
export const DYNAMIC_CONFIG = {
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
  // Another server there would answer in place of ours.
  if (options.port !== undefined) await expectFreePort(options.port);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startOnce(options);
    } catch (error) {
      if (!(error instanceof DiedAtStart) || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}

/**
 * The server chooses its other ports itself, and listens on them later: another program may take one in between, and the server
 * dies of it. With that many attempts a server that dies of something else still says so within seconds.
 */
const MAX_ATTEMPTS = 3;

class DiedAtStart extends Error {}

async function startOnce(options: DevServerOptions): Promise<DevServer> {
  const [freePort = 0, freeUiPort = 0] = await freePorts(2);
  const port = options.port ?? freePort;
  const uiPort = options.webUi ? freeUiPort : null;
  const server = await spawnTethered(options.cli, serverArguments(options, port, uiPort), {
    env: stripTemporalEnv(process.env),
    stdout: 'pipe',
    stderr: 'pipe',
    graceMs: STOP_GRACE_MS,
  });
  const words = keepWords(server.stdout, server.stderr);
  const address = `${HOST}:${port}`;
  const uiUrl = uiPort === null ? null : `http://${HOST}:${uiPort}`;
  try {
    await untilReady(server, address, uiUrl);
  } catch (error) {
    await server.stop();
    const said = (await words(20)) || '(nothing)';
    const Failure = error instanceof DiedAtStart ? DiedAtStart : Error;
    const message = `the Temporal dev server ${(error as Error).message}. It said:\n${said}`;
    throw new Failure(message, { cause: error });
  }
  return { ...server, address, port, uiUrl, namespace: NAMESPACE };
}

function serverArguments(options: DevServerOptions, port: number, uiPort: number | null): string[] {
  const dynamicConfig = Object.entries({ ...DYNAMIC_CONFIG, ...options.dynamicConfig });
  return [
    ...['server', 'start-dev', '--ip', HOST, '--port', String(port), '--log-level', 'error'],
    ...['--disable-config-file', '--disable-config-env', '--env-file', NO_ENV_FILE],
    ...(uiPort === null ? ['--headless'] : ['--ui-port', String(uiPort), '--ui-disable-news-fetch']),
    ...(options.metricsPort === undefined ? [] : ['--metrics-port', String(options.metricsPort)]),
    ...(options.httpPort === undefined ? [] : ['--http-port', String(options.httpPort)]),
    ...(options.databaseFile === undefined ? [] : ['--db-filename', options.databaseFile]),
    ...(options.searchAttributes
      ? Object.entries(SEARCH_ATTRIBUTE_TYPES).flatMap(([name, type]) => [
          '--search-attribute',
          `${name}=${type}`,
        ])
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
  const died = server.exited.then(({ code, signal }) => {
    throw new DiedAtStart(`ended at its start with ${signal ?? `exit code ${code}`}`);
  });
  while (!(await Promise.race([answers(address, uiUrl), died]))) {
    if (Date.now() > deadline) throw new Error(`did not answer within ${START_LIMIT_MS / 1_000} s`);
    await Promise.race([sleep(50), died]);
  }
}

/** True when the namespace and, where there is one, the Web UI answer. */
async function answers(address: string, uiUrl: string | null): Promise<boolean> {
  // A proxy of the environment is for the outside; gRPC would use it for 127.0.0.1 as well. Without interceptors the
  // SDK does not repeat the question by itself, which would go on after the end of a server that has died.
  const channelArgs = { 'grpc.enable_http_proxy': 0 };
  const connection = Connection.lazy({ address, channelArgs, interceptors: [] });
  const signal = AbortSignal.timeout(ANSWER_LIMIT_MS);
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

/**
 * A file that never exists. SDK and CLI take a missing configuration file for an empty one, while TypeScript's
 * `@temporalio/envconfig` 1.24 throws on a file that is empty.
 */
const NO_CONFIG_FILE = path.resolve(__dirname, '../../.cache/no-temporal-profile/temporal.toml');

/**
 * A copy of `env` that knows no Temporal server: without its `TEMPORAL_*` variables, and with `TEMPORAL_CONFIG_FILE` set
 * so that the user's profiles are not read either. Tests, bench and demo give it to all that they start, plus the
 * address of their own dev server.
 */
export function stripTemporalEnv(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(([name]) => !/^TEMPORAL_(?!CLI_PATH$)/.test(name));
  return { ...Object.fromEntries(kept), TEMPORAL_CONFIG_FILE: NO_CONFIG_FILE };
}

/** The deprecated `--env-file` of the CLI, which defaults to a file in the home folder that can set any flag. */
const NO_ENV_FILE = path.join(path.dirname(NO_CONFIG_FILE), 'temporal.yaml');

import { once } from 'node:events';
import { createServer } from 'node:net';
import path from 'node:path';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { freePort } from './free-port';
import { SEARCH_ATTRIBUTE_TYPES } from '../../src/contract/names';

export interface DevServerOptions {
  /** The executable of the Temporal CLI; see `findTemporalCli`. */
  readonly cli: string;
  /** A SQLite file that remains after the server has stopped. @default in memory */
  readonly databaseFile?: string;
  /** Whether the server serves the Web UI. @default false */
  readonly webUi?: boolean;
  /** The port of the gRPC front end, for a restart at the same address. @default a free port */
  readonly port?: number;
  /** The port at which the server serves its own Prometheus metrics (`/metrics`). @default a free port */
  readonly metricsPort?: number;
  /** The port of the server's HTTP API. @default a free port */
  readonly httpPort?: number;
  /** Dynamic configuration of the server, in addition to the values that the project needs. */
  readonly dynamicConfig?: Readonly<Record<string, string | number | boolean>>;
  /** Registers the project's search attributes at the start, as the CLI's `setup` does. @default false */
  readonly searchAttributes?: boolean;
}

export interface DevServer {
  /** The address of the gRPC front end, `127.0.0.1:PORT`. */
  readonly address: string;
  /** The address of the Web UI, or null without the Web UI. */
  readonly uiUrl: string | null;
  /** Kills the server. A database file keeps what the server has confirmed. A second call has no effect. */
  stop(): Promise<void>;
}

const HOST = '127.0.0.1';

/** Dynamic configuration that the project needs. */
const DYNAMIC_CONFIG = {
  // Rate limits per project need this setting, which implies the priority matcher (server 1.31, task_queue_partition_manager.go).
  'matching.enableFairness': true,
};

/**
 * The SDK allows a server five seconds to start, and the server chooses some of its ports long before it uses them. A second
 * and third attempt help on a busy machine, and if another program took such a port.
 */
const MAX_ATTEMPTS = 3;

/**
 * Starts a Temporal dev server on 127.0.0.1 and waits until the server responds. The caller must stop the server. If the server
 * cannot start, it writes the reason to stderr.
 *
 * @throws Error if the port is not free, or if the server did not start at the third attempt
 */
export async function startDevServer(options: DevServerOptions): Promise<DevServer> {
  // The SDK would use another server at this port as if it had started that server.
  if (options.port !== undefined) await expectFreePort(options.port);
  // The SDK's client would use the environment's proxy, which cannot connect to this machine.
  process.env.no_grpc_proxy = HOST;
  const uiPort = options.webUi ? await freePort() : undefined;
  const environment = await createLocal(options, uiPort);
  let stopped: Promise<void> | undefined;
  return {
    address: environment.address,
    uiUrl: uiPort === undefined ? null : `http://${HOST}:${uiPort}`,
    stop: () => (stopped ??= environment.teardown()),
  };
}

/** Throws if another program uses the port. */
async function expectFreePort(port: number): Promise<void> {
  const probe = createServer().listen(port, HOST);
  await once(probe, 'listening');
  await once(probe.close(), 'close');
}

async function createLocal(options: DevServerOptions, uiPort?: number): Promise<TestWorkflowEnvironment> {
  const { cli, databaseFile, port } = options;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await TestWorkflowEnvironment.createLocal({
        server: {
          executable: { type: 'existing-path', path: cli },
          ip: HOST,
          log: { format: 'text', level: 'never' },
          extraArgs: extraArguments(options),
          ...(port !== undefined && { port }),
          ...(uiPort !== undefined && { uiPort }),
          ...(databaseFile !== undefined && { dbFilename: databaseFile }),
        },
      });
    } catch (error) {
      if (attempt === MAX_ATTEMPTS) throw error;
    }
  }
}

function extraArguments(options: DevServerOptions): string[] {
  const { webUi, metricsPort, httpPort, searchAttributes } = options;
  const dynamicConfig = Object.entries({ ...DYNAMIC_CONFIG, ...options.dynamicConfig });
  const attributes = Object.entries(searchAttributes ? SEARCH_ATTRIBUTE_TYPES : {});
  return [
    // No configuration of the user has an effect, and the server does not print its addresses.
    ...['--disable-config-file', '--disable-config-env', '--env-file', NO_ENV_FILE, '--env', 'default'],
    ...['--output', 'none'],
    ...(webUi ? ['--ui-disable-news-fetch'] : []),
    ...(metricsPort === undefined ? [] : ['--metrics-port', String(metricsPort)]),
    ...(httpPort === undefined ? [] : ['--http-port', String(httpPort)]),
    ...attributes.flatMap(([name, type]) => ['--search-attribute', `${name}=${type}`]),
    ...dynamicConfig.flatMap(([name, value]) => [
      '--dynamic-config-value',
      `${name}=${JSON.stringify(value)}`,
    ]),
  ];
}

/** A file that never exists. The programs of Temporal ignore a configuration file that does not exist. */
const NO_CONFIG_FILE = path.resolve(__dirname, '../../.cache/no-temporal-profile/temporal.toml');

/**
 * Returns a copy of `env` without the user's Temporal server: without the `TEMPORAL_*` variables except `TEMPORAL_CLI_PATH`, and with
 * a `TEMPORAL_CONFIG_FILE` that does not exist, so that no profile is read. Tests, benchmarks and the demo start every process
 * with this environment and the address of their own dev server.
 */
export function stripTemporalEnv(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(([name]) => !/^TEMPORAL_(?!CLI_PATH$)/.test(name));
  return { ...Object.fromEntries(kept), TEMPORAL_CONFIG_FILE: NO_CONFIG_FILE };
}

/** The CLI's deprecated environment file. Its default is a file in the home folder, which can set any flag. */
const NO_ENV_FILE = path.join(path.dirname(NO_CONFIG_FILE), 'temporal.yaml');

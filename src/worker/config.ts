import type { DataConverter } from '@temporalio/common';
import type { z } from 'zod';
import { ApiKeyError, type ApiKeySource, keyFromFile, keyFromText } from '../agent-api/api-key';
import type { Proxy } from '../agent-api/connections';
import { redact } from '../agent-api/redaction';
import { formatDuration } from '../core/units';
import { loadTemporalConfig, type TemporalConfig } from '../temporal/config';
import { loadDataConverter } from '../temporal/data-converter';
import { Redactor } from './logging';
import { loadProxy, proxySecrets } from './proxy';
import {
  collisions,
  type Environment,
  formatListenAddress,
  type Listener,
  type LogLevelName,
  setVariables,
  type VariableName,
  variables,
} from './variables';

/** The checked configuration of the worker, from its environment. */
export interface WorkerConfig {
  readonly temporal: TemporalConfig;
  readonly agentApi: {
    readonly baseUrl: string;
    readonly apiKey: ApiKeySource;
    readonly keyOrigin: string;
    /** The limit of one HTTP exchange, from connecting to the last byte read. */
    readonly timeoutMs: number;
    readonly proxy: Proxy | undefined;
  };
  /** How many polls may wait in the process at a time; null if memory decides. */
  readonly inProcessPolls: number | null;
  readonly taskQueues: { readonly followUp: string; readonly read: string; readonly send: string };
  readonly health: Listener;
  readonly metrics: Listener;
  readonly logLevel: LogLevelName;
  /** How payloads are written, where it is not the SDK's own way. */
  readonly dataConverter: DataConverter | undefined;
}

export interface LoadedConfig {
  readonly config: WorkerConfig;
  /** Knows every secret of the configuration. */
  readonly redactor: Redactor;
  /** Settings that are probably mistakes, one sentence each. */
  readonly warnings: readonly string[];
}

/**
 * Reads and checks the whole configuration; nothing else in the process reads the environment.
 *
 * @throws ConfigurationError that names every problem at once
 */
export async function loadConfig(env: Environment): Promise<LoadedConfig> {
  const set = setVariables(env);
  const parsed = variables.safeParse(set);
  const temporal = loadTemporalConfig(env);
  const key = await loadApiKey(set);
  const proxy = loadProxy(env);
  const dataConverter = await loadDataConverter(env);
  const problems = [
    ...(parsed.success
      ? []
      : parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)),
    ...('problem' in key ? [key.problem] : []),
    ...[proxy, dataConverter].flatMap((each) => (isProblem(each) ? [each.problem] : [])),
    ...collisions(set),
    ...(temporal.ok ? [] : temporal.problems),
  ];
  const redactor = new Redactor();
  for (const secret of [set.AGENT_API_KEY, env.TEMPORAL_API_KEY]) redactor.add(secret);
  const isWrong = !parsed.success || 'problem' in key || !temporal.ok || problems.length > 0;
  if (isWrong || isProblem(proxy) || isProblem(dataConverter)) {
    throw new ConfigurationError(problems.map(redactor.text));
  }
  const secrets = [key.first, ...temporal.secrets, ...(proxy === undefined ? [] : proxySecrets(proxy))];
  for (const secret of secrets) redactor.add(secret);
  const warnings = parsed.data.AGENT_API_BASE_URL.inClear ? [IN_CLEAR] : [];
  const config = { ...workerConfig(parsed.data, temporal.config, key, proxy, redactor), dataConverter };
  return { config, redactor, warnings };
}

function isProblem<T extends object>(value: T | undefined): value is Extract<T, { problem: string }> {
  return value !== undefined && 'problem' in value;
}

const IN_CLEAR =
  'AGENT_API_BASE_URL is a plain http:// URL of another machine: the key and every prompt travel unencrypted; use https://';

function workerConfig(
  values: z.output<typeof variables>,
  temporal: TemporalConfig,
  key: LoadedKey,
  proxy: Proxy | undefined,
  redactor: Redactor,
): Omit<WorkerConfig, 'dataConverter'> {
  const apiKey: ApiKeySource = {
    current: async () => {
      const current = await key.source.current();
      redactor.add(current);
      return current;
    },
  };
  return {
    temporal,
    agentApi: {
      baseUrl: values.AGENT_API_BASE_URL.url,
      apiKey,
      keyOrigin: key.origin,
      timeoutMs: values.AGENT_API_TIMEOUT,
      proxy,
    },
    inProcessPolls: values.AGENT_API_IN_PROCESS_POLLS ?? null,
    taskQueues: {
      followUp: values.FOLLOW_UP_TASK_QUEUE,
      read: values.AGENT_API_TASK_QUEUE,
      send: values.AGENT_API_SEND_TASK_QUEUE,
    },
    health: values.FOLLOW_UP_HEALTH_ADDRESS,
    metrics: values.FOLLOW_UP_METRICS_ADDRESS,
    logLevel: values.LOG_LEVEL,
  };
}

/** The configuration in effect as fields of one log line. It shows where the key came from, and whether TLS is on. */
export function describeConfig(config: WorkerConfig): Record<string, string> {
  const { temporal, agentApi, taskQueues } = config;
  return {
    temporal: temporal.address,
    namespace: temporal.namespace,
    tls: temporal.connection.tls === undefined || temporal.connection.tls === false ? 'off' : 'on',
    agentApi: agentApi.baseUrl,
    agentApiKey: `from ${agentApi.keyOrigin}`,
    agentApiTimeout: formatDuration(agentApi.timeoutMs),
    ...(agentApi.proxy === undefined ? {} : { agentApiProxy: new URL(agentApi.proxy.url).host }),
    workflowTaskQueue: taskQueues.followUp,
    readTaskQueue: taskQueues.read,
    sendTaskQueue: taskQueues.send,
    dataConverter: config.dataConverter === undefined ? 'none' : 'FOLLOW_UP_DATA_CONVERTER',
    health: describeListener(config.health),
    metrics: describeListener(config.metrics),
    logLevel: config.logLevel,
  };
}

function describeListener(listener: Listener): string {
  return listener === 'off' ? 'off' : formatListenAddress(listener.address);
}

interface LoadedKey {
  readonly source: ApiKeySource;
  /** The key at the start of the process. */
  readonly first: string;
  /** Where it came from, for the log: the variable, and the path of the file. */
  readonly origin: string;
}

/** The agent service's key from exactly one of the two variables. */
async function loadApiKey(
  set: Partial<Record<VariableName, string>>,
): Promise<LoadedKey | { problem: string }> {
  const { AGENT_API_KEY: text, AGENT_API_KEY_FILE: path } = set;
  if (text !== undefined && path !== undefined) {
    return {
      problem:
        'AGENT_API_KEY, AGENT_API_KEY_FILE: both are set, so it is not clear which one counts; unset one of them',
    };
  }
  try {
    if (text !== undefined) return await loaded(keyFromText(text), 'AGENT_API_KEY');
    if (path !== undefined) return await loaded(await keyFromFile(path), `AGENT_API_KEY_FILE ${path}`);
  } catch (error) {
    if (!(error instanceof ApiKeyError)) throw error;
    return { problem: path === undefined ? `AGENT_API_KEY: ${error.message}` : fileProblem(error, path) };
  }
  return {
    problem:
      'AGENT_API_KEY: is not set; give the admin key of the agent service, or the path of a file that holds it in AGENT_API_KEY_FILE',
  };
}

async function loaded(source: ApiKeySource, origin: string): Promise<LoadedKey> {
  return { source, first: await source.current(), origin };
}

/** A "path" without a slash may be the key itself, put into the wrong variable: it is not shown. */
function fileProblem(error: ApiKeyError, path: string): string {
  const reason = path.startsWith('/') || path.startsWith('.') ? error.message : redact(error.message, [path]);
  return `AGENT_API_KEY_FILE: ${reason}; give the path of a readable file that holds the key and nothing else`;
}

/** Thrown when the configuration keeps the worker from starting. The message names every problem and holds no secret. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';

  /** @param problems each begins with the name of its variable, says what is wrong, and what is right */
  constructor(readonly problems: readonly string[]) {
    const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
    super(
      `The worker cannot start: its configuration has ${count}.\n` +
        problems.map((problem) => `  ${problem}\n`).join('') +
        'Every variable is described in docs/configuration.md; --help lists them.',
    );
  }
}

/**
 * Waits for both, so that one message tells what is wrong with each.
 *
 * @throws ConfigurationError with the problems of both
 */
export async function bothConfigured<A, B>(a: Promise<A>, b: Promise<B>): Promise<[A, B]> {
  const ends = await Promise.allSettled([a, b]);
  const problems = ends.flatMap((end) => {
    return end.status === 'rejected' && end.reason instanceof ConfigurationError ? end.reason.problems : [];
  });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return Promise.all([a, b]);
}

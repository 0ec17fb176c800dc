import type { z } from 'zod';
import type { ApiKeySource } from '../agent-api/api-key';
import { formatDuration } from '../contract/duration';
import { type LoadedKey, loadApiKey } from './api-key-config';
import { type Listener, collisions, variables } from './config-schema';
import { ConfigurationError } from './configuration-error';
import { formatListenAddress } from './listen-address';
import type { LogLevelName } from './log-level';
import { Redactor } from './redaction';
import { type TemporalConfig, loadTemporalConfig } from '../client/temporal-config';
import { type Environment, misspeltVariables, setVariables } from './variables';

/** Everything the worker is told by its environment, checked. */
export interface WorkerConfig {
  readonly temporal: TemporalConfig;
  readonly agentApi: {
    readonly baseUrl: string;
    readonly apiKey: ApiKeySource;
    readonly keyOrigin: string;
    /** The limit of one HTTP exchange, from connecting to the last byte read. */
    readonly timeoutMs: number;
  };
  /** How many polls may wait in the process at a time; null where memory decides. */
  readonly inProcessPolls: number | null;
  readonly taskQueues: { readonly followUp: string; readonly read: string; readonly send: string };
  readonly health: Listener;
  readonly metrics: Listener;
  readonly logLevel: LogLevelName;
}

export interface LoadedConfig {
  readonly config: WorkerConfig;
  /** Knows every secret of the configuration. */
  readonly redactor: Redactor;
  /** What is probably not meant, one sentence each. */
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
  const problems = [
    ...(parsed.success
      ? []
      : parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)),
    ...('problem' in key ? [key.problem] : []),
    ...collisions(set),
    ...(temporal.ok ? [] : temporal.problems),
  ];
  const redactor = new Redactor();
  for (const secret of [set.AGENT_API_KEY, env.TEMPORAL_API_KEY]) redactor.add(secret);
  if (!parsed.success || 'problem' in key || !temporal.ok || problems.length > 0) {
    throw new ConfigurationError(problems.map(redactor.text));
  }
  for (const secret of [key.first, ...temporal.secrets]) redactor.add(secret);
  const warnings = misspeltVariables(env);
  if (parsed.data.AGENT_API_BASE_URL.inClear) warnings.push(IN_CLEAR);
  return { config: workerConfig(parsed.data, temporal.config, key, redactor), redactor, warnings };
}

const IN_CLEAR =
  'AGENT_API_BASE_URL is a plain http:// URL of another machine: the key and every prompt travel unencrypted; use https://';

function workerConfig(
  values: z.output<typeof variables>,
  temporal: TemporalConfig,
  key: LoadedKey,
  redactor: Redactor,
): WorkerConfig {
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

/** The configuration in effect as fields of one log line. Of the key it tells where it came from, of TLS whether. */
export function describeConfig(config: WorkerConfig): Record<string, string> {
  const { temporal, agentApi, taskQueues } = config;
  return {
    temporal: temporal.address,
    namespace: temporal.namespace,
    tls: temporal.connection.tls === undefined || temporal.connection.tls === false ? 'off' : 'on',
    agentApi: agentApi.baseUrl,
    agentApiKey: `from ${agentApi.keyOrigin}`,
    agentApiTimeout: formatDuration(agentApi.timeoutMs),
    workflowTaskQueue: taskQueues.followUp,
    readTaskQueue: taskQueues.read,
    sendTaskQueue: taskQueues.send,
    health: describeListener(config.health),
    metrics: describeListener(config.metrics),
    logLevel: config.logLevel,
  };
}

function describeListener(listener: Listener): string {
  return listener === 'off' ? 'off' : formatListenAddress(listener.address);
}

import { toCanonicalString } from '@temporalio/common';
import { webhooksOf } from '../activities/post-notice';
import { ApiKeyError, type ApiKeySource, keyFromFile, keyFromText } from '../agent-api/api-key';
import type { Proxy } from '../agent-api/client';
import { Redactor } from '../agent-api/redaction';
import { type Problem, problemText } from '../core/checks';
import { formatDuration } from '../core/units';
import {
  ConfigurationError,
  type Environment,
  loadDataConverter,
  loadTemporalConfig,
  variable,
} from '../temporal/config';
import {
  checkVariables,
  formatListenAddress,
  isLoopback,
  type Listener,
  setVariables,
  type SetVariables,
} from './variables';

export type LoadedConfig = Awaited<ReturnType<typeof loadConfig>>;
export type WorkerConfig = LoadedConfig['config'];

/**
 * Reads and checks the whole configuration; nothing else in the process reads the environment.
 *
 * @returns the configuration, a redactor that knows every secret of it, and settings that are probably mistakes
 * @throws ConfigurationError that names every problem at once
 */
export async function loadConfig(env: Environment) {
  const set = setVariables(env);
  const given = [set.AGENT_API_KEY, env.TEMPORAL_API_KEY].filter((secret) => secret !== undefined);
  const [values, temporal, key, proxy, dataConverter, secrets] = await allConfigured([
    () => checkVariables(set),
    () => loadTemporalConfig(env),
    () => loadApiKey(set),
    () => loadProxy(env),
    () => loadDataConverter(env),
    () => loadNotifySecrets(set),
  ]).catch((error: unknown) => {
    if (!(error instanceof ConfigurationError)) throw error;
    const { text: redact } = new Redactor(given);
    throw new ConfigurationError(error.problems.map(({ field, text }) => ({ field, text: redact(text) })));
  });
  const redactor = new Redactor([...given, key.first, ...temporal.secrets, ...proxySecrets(proxy)]);
  /** A source whose secrets, one or more with commas between them, are hidden from their first use on. */
  const hidden = (source: ApiKeySource): ApiKeySource => ({
    current: async () => {
      const current = await source.current();
      for (const secret of current.split(',')) redactor.remember(secret);
      return current;
    },
  });
  const apiKey = hidden(key.source);
  const baseUrl = values.AGENT_API_BASE_URL;
  const { TEMPORAL_DEPLOYMENT_NAME: deploymentName, TEMPORAL_WORKER_BUILD_ID: buildId } = values;
  const config = {
    temporal,
    /** The version as which the workers run; undefined without Worker Versioning. */
    deploymentVersion: deploymentName && buildId ? { deploymentName, buildId } : undefined,
    agentApi: {
      baseUrl: baseUrl.href,
      apiKey,
      keyOrigin: key.origin,
      /** The limit of one HTTP exchange, from connecting to the last byte read. */
      timeoutMs: values.AGENT_API_TIMEOUT,
      proxy,
    },
    /** How many polls may wait in the process at a time; undefined if memory decides. */
    inProcessPolls: values.AGENT_API_IN_PROCESS_POLLS,
    taskQueues: {
      followUp: values.FOLLOW_UP_TASK_QUEUE,
      read: values.AGENT_API_TASK_QUEUE,
      send: values.AGENT_API_SEND_TASK_QUEUE,
    },
    /** Where the ends of follow-ups and batches are told. */
    notify: values.FOLLOW_UP_NOTIFY_URL &&
      secrets && { url: values.FOLLOW_UP_NOTIFY_URL.href, secrets: hidden(secrets) },
    health: values.FOLLOW_UP_HEALTH_ADDRESS,
    metrics: values.FOLLOW_UP_METRICS_ADDRESS,
    logLevel: values.LOG_LEVEL,
    /** How payloads are written, where it is not the SDK's own way. */
    dataConverter,
  };
  const warnings = baseUrl.protocol === 'http:' && !isLoopback(baseUrl) ? [IN_CLEAR] : [];
  return { config, redactor, warnings };
}

const IN_CLEAR =
  'AGENT_API_BASE_URL is a plain http:// URL of another machine: the key and every prompt travel unencrypted; use https://';

/** Waits for all parts. @throws ConfigurationError that tells what is wrong with each, in one message */
export async function allConfigured<T extends readonly unknown[]>(parts: {
  [K in keyof T]: () => T[K] | Promise<T[K]>;
}): Promise<T> {
  const ends = await Promise.allSettled(parts.map((part) => Promise.resolve().then(part)));
  const reasons = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []));
  const problems = reasons.flatMap((reason) => (reason instanceof ConfigurationError ? reason.problems : []));
  if (problems.length > 0) throw new ConfigurationError(problems);
  if (reasons.length > 0) throw reasons[0];
  return ends.map((end) => (end.status === 'fulfilled' ? end.value : undefined)) as unknown as T;
}

/** What the worker prints before it ends. */
export function configurationText(problems: readonly Problem[]): string {
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
  return (
    `The worker cannot start: its configuration has ${count}.\n` +
    problems.map((problem) => `  ${problemText(problem)}\n`).join('') +
    'Every variable is described in docs/configuration.md; --help lists them.\n'
  );
}

/** The configuration in effect as fields of one log line. It shows where the key came from, and whether TLS is on. */
export function describeConfig(config: WorkerConfig): Record<string, string> {
  const { temporal, agentApi, taskQueues, deploymentVersion } = config;
  const listening = (at: Listener) => (at === 'off' ? at : formatListenAddress(at.address));
  return {
    temporal: temporal.address,
    namespace: temporal.namespace,
    tls: temporal.connection.tls ? 'on' : 'off',
    agentApi: agentApi.baseUrl,
    agentApiKey: `from ${agentApi.keyOrigin}`,
    agentApiTimeout: formatDuration(agentApi.timeoutMs),
    ...(agentApi.proxy === undefined ? {} : { agentApiProxy: new URL(agentApi.proxy.url).host }),
    workflowTaskQueue: taskQueues.followUp,
    readTaskQueue: taskQueues.read,
    sendTaskQueue: taskQueues.send,
    // A path or a query may hold a token.
    notify: config.notify === undefined ? 'off' : new URL(config.notify.url).origin,
    deploymentVersion: deploymentVersion === undefined ? 'none' : toCanonicalString(deploymentVersion),
    dataConverter: config.dataConverter === undefined ? 'none' : 'FOLLOW_UP_DATA_CONVERTER',
    health: listening(config.health),
    metrics: listening(config.metrics),
    logLevel: config.logLevel,
  };
}

/** The key from exactly one of the two variables, as it is at the start of the process, and its origin for the log. */
async function loadApiKey({ AGENT_API_KEY: text, AGENT_API_KEY_FILE: path }: SetVariables) {
  const wrong = (field: string, words: string) => new ConfigurationError([{ field, text: words }]);
  if (text !== undefined && path !== undefined) {
    const words = 'both are set, so it is not clear which one counts; unset one of them';
    throw wrong('AGENT_API_KEY, AGENT_API_KEY_FILE', words);
  }
  if (text === undefined && path === undefined) {
    throw wrong(
      'AGENT_API_KEY',
      'is not set; give the admin key of the agent service, or the path of a file that holds it in AGENT_API_KEY_FILE',
    );
  }
  try {
    const source = path === undefined ? keyFromText(text ?? '') : await keyFromFile(path);
    const origin = path === undefined ? 'AGENT_API_KEY' : `AGENT_API_KEY_FILE ${path}`;
    return { source, first: await source.current(), origin };
  } catch (error) {
    if (!(error instanceof ApiKeyError)) throw error;
    if (path === undefined) throw wrong('AGENT_API_KEY', error.problem);
    // A "path" without a slash may be the key itself, put into the wrong variable: it is not shown.
    const reason = /^[/.]/.test(path) ? error.message : new Redactor([path]).text(error.message);
    const advice = 'give the path of a readable file that holds the key and nothing else';
    throw wrong('AGENT_API_KEY_FILE', `${reason}; ${advice}`);
  }
}

/** @throws ConfigurationError, which shows neither a secret nor the path, which may be one */
async function loadNotifySecrets({ FOLLOW_UP_NOTIFY_SECRET_FILE: path }: SetVariables) {
  if (path === undefined) return undefined;
  try {
    const source = await keyFromFile(path, 'one secret, or two with a comma between them,');
    webhooksOf(await source.current());
    return source;
  } catch (error) {
    const reason = error instanceof ApiKeyError ? error.problem : (error as Error).message;
    throw new ConfigurationError([{ field: 'FOLLOW_UP_NOTIFY_SECRET_FILE', text: `its file ${reason}` }]);
  }
}

/**
 * The proxy for the agent service, from `HTTPS_PROXY` and `NO_PROXY`. As everywhere, the name in lower case counts first, and a
 * host without a scheme means http. It is for https base URLs.
 *
 * @throws ConfigurationError, which does not show the value, because it may hold a password
 */
function loadProxy(env: Environment): Proxy | undefined {
  const either = (name: string) => variable(env, name.toLowerCase()) ?? variable(env, name);
  const text = either('HTTPS_PROXY');
  if (text === undefined) return undefined;
  try {
    const url = new URL(text.includes('://') ? text : `http://${text}`);
    // Throws where one of them has a lone %, as the HTTP client would at the first request.
    decodeURIComponent(url.username + url.password);
    if (/^https?:$/.test(url.protocol)) return { url: url.href, noProxy: either('NO_PROXY') ?? '' };
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof URIError)) throw error;
  }
  const words =
    'is not the URL of a proxy; give http://host:port or https://host:port, with user:password@ before the host if the proxy asks for them, and % in these as %25';
  throw new ConfigurationError([{ field: 'HTTPS_PROXY', text: words }]);
}

/** The password of a proxy's URL, as it writes them and as the proxy reads them. */
function proxySecrets(proxy: Proxy | undefined): string[] {
  if (proxy === undefined) return [];
  const { password } = new URL(proxy.url);
  return [password, decodeURIComponent(password)];
}

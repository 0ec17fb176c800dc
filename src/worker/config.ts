import { SECRETS_FORMAT, createWebhooks } from '../activities/post-notification';
import { ApiKeyError, type ApiKeySource, keyFromFile, keyFromText } from '../agent-api/api-key';
import type { Proxy } from '../agent-api/client';
import { Redactor } from '../agent-api/redaction';
import { type Problem, problemText } from '../contract/checks';
import { pluralize } from '../contract/text';
import {
  ConfigurationError,
  type Environment,
  loadDataConverter,
  loadTemporalConfig,
  readVariable,
} from '../temporal/connection-config';
import { checkVariables, readDefinedVariables, type DefinedVariables } from './variables';

export type LoadedConfig = Awaited<ReturnType<typeof loadConfig>>;
export type WorkerConfig = LoadedConfig['config'];

/**
 * Reads and checks the whole configuration; nothing else in the process reads the environment.
 *
 * @returns with what of it may be shown, a redactor that knows its secrets, and probable mistakes
 * @throws ConfigurationError that names every problem at once
 */
export async function loadConfig(env: Environment) {
  const variables = readDefinedVariables(env);
  const given = [variables.AGENT_API_KEY, env.TEMPORAL_API_KEY].filter((secret) => secret !== undefined);
  const [values, temporal, key, proxy, dataConverter, secrets] = await loadAll([
    () => checkVariables(variables),
    () => loadTemporalConfig(env),
    () => loadApiKey(variables),
    () => loadProxy(env),
    () => loadDataConverter(env),
    () => loadNotifySecrets(variables),
  ]).catch((error: unknown) => {
    if (!(error instanceof ConfigurationError)) throw error;
    const { redact } = new Redactor(given);
    throw new ConfigurationError(error.problems.map(({ field, text }) => ({ field, text: redact(text) })));
  });
  const password = decodeURIComponent(new URL(proxy?.url ?? 'http://none').password);
  const redactor = new Redactor([...given, ...temporal.secrets, password], '[withheld: contains a secret]');
  /** Redacts the values of a source: one secret, or several that are separated by commas. */
  const redactingSource = async (source: ApiKeySource): Promise<ApiKeySource> => {
    const current = async () => {
      const secrets = await source.current();
      for (const each of secrets.split(',')) redactor.addKey(each);
      return secrets;
    };
    await current();
    return { current };
  };
  const baseUrl = values.AGENT_API_BASE_URL;
  const { TEMPORAL_DEPLOYMENT_NAME: deploymentName, TEMPORAL_WORKER_BUILD_ID: buildId } = values;
  const notifyUrl = values.FOLLOW_UP_NOTIFY_URL;
  const config = {
    temporal,
    deploymentVersion: deploymentName && buildId ? { deploymentName, buildId } : undefined,
    agentApi: {
      baseUrl: baseUrl.href,
      apiKey: await redactingSource(key),
      timeoutMs: values.AGENT_API_TIMEOUT,
      proxy,
    },
    taskQueues: {
      followUp: values.FOLLOW_UP_TASK_QUEUE,
      read: values.AGENT_API_READ_TASK_QUEUE,
      send: values.AGENT_API_SEND_TASK_QUEUE,
    },
    notify: notifyUrl && secrets && { url: notifyUrl.href, secrets: await redactingSource(secrets) },
    health: values.FOLLOW_UP_HEALTH_ADDRESS,
    metrics: values.FOLLOW_UP_METRICS_ADDRESS,
    logLevel: values.LOG_LEVEL,
    dataConverter,
  };
  /** For one log line: what is set, without secrets. A path or a query of the notify URL may hold a token. */
  const loggableConfig = {
    ...variables,
    temporal: `${temporal.address}, namespace ${temporal.namespace}, TLS ${temporal.connection.tls ? 'on' : 'off'}`,
    ...(variables.AGENT_API_KEY && { AGENT_API_KEY: 'set' }),
    ...(notifyUrl && { FOLLOW_UP_NOTIFY_URL: notifyUrl.origin }),
    ...(proxy && { HTTPS_PROXY: new URL(proxy.url).host }),
  };
  const isPlaintext = baseUrl.protocol === 'http:' && !LOOPBACK.test(baseUrl.hostname);
  return {
    config,
    loggableConfig: loggableConfig,
    redactor,
    warnings: isPlaintext ? [PLAINTEXT_WARNING] : [],
  };
}

/** RFC 6761 keeps `localhost` and names below it on this machine; so are 127.0.0.0/8 and ::1. */
const LOOPBACK = /^(?:(?:.+\.)?localhost|127(?:\.\d+){3}|\[::1\])$/;

const PLAINTEXT_WARNING =
  'AGENT_API_BASE_URL is a plain http:// URL of another machine: the key and every prompt travel unencrypted; use https://';

/** Waits for all parts. @throws ConfigurationError with the problems of all */
export async function loadAll<T extends readonly unknown[]>(parts: {
  [K in keyof T]: () => T[K] | Promise<T[K]>;
}): Promise<T> {
  const results = await Promise.allSettled(parts.map((part) => Promise.resolve().then(part)));
  const reasons = results.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []));
  const problems = reasons.flatMap((reason) => (reason instanceof ConfigurationError ? reason.problems : []));
  if (problems.length > 0) throw new ConfigurationError(problems);
  if (reasons.length > 0) throw reasons[0];
  return results.map((end) => (end.status === 'fulfilled' ? end.value : undefined)) as unknown as T;
}

export function configurationText(problems: readonly Problem[]): string {
  const lines = problems.map((problem) => `  ${problemText(problem)}\n`).join('');
  const count = pluralize(problems.length, 'problem');
  return `The worker cannot start: its configuration has ${count} (docs/configuration.md, --help).\n${lines}`;
}

async function loadApiKey({ AGENT_API_KEY: text, AGENT_API_KEY_FILE: path }: DefinedVariables) {
  if (text !== undefined && path === undefined) return readSecret('AGENT_API_KEY', () => keyFromText(text));
  if (text === undefined && path !== undefined)
    return readSecret('AGENT_API_KEY_FILE', () => keyFromFile(path));
  const which = text === undefined ? 'neither is set' : 'both are set';
  const right = 'set one of them: the admin key of the agent service, or the path of a file that holds it';
  throw new ConfigurationError([{ field: 'AGENT_API_KEY, AGENT_API_KEY_FILE', text: `${which}; ${right}` }]);
}

async function loadNotifySecrets({ FOLLOW_UP_NOTIFY_SECRET_FILE: path }: DefinedVariables) {
  if (path === undefined) return undefined;
  return readSecret('FOLLOW_UP_NOTIFY_SECRET_FILE', async () => {
    const source = await keyFromFile(path, SECRETS_FORMAT);
    createWebhooks(await source.current());
    return source;
  });
}

/** @throws ConfigurationError without a file's path: it may be the secret itself, put into the wrong variable */
async function readSecret(field: string, read: () => ApiKeySource | Promise<ApiKeySource>) {
  try {
    return await read();
  } catch (error) {
    throw error instanceof ApiKeyError ? new ConfigurationError([{ field, text: error.problem }]) : error;
  }
}

/** For https base URLs. As everywhere, the name in lower case counts first. @throws ConfigurationError without the value */
function loadProxy(env: Environment): Proxy | undefined {
  const either = (name: string) => readVariable(env, name.toLowerCase()) ?? readVariable(env, name);
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
  const problem =
    'is not the URL of a proxy; give http://host:port or https://host:port, with user:password@ before the host if the proxy ' +
    'asks for them, and % in these as %25';
  throw new ConfigurationError([{ field: 'HTTPS_PROXY', text: problem }]);
}

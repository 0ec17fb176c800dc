import { parseSecrets } from '../activities/post-notification';
import { SecretError, type SecretSource, keyFromFile, keyFromText } from '../agent-api/secret-source';
import type { Proxy } from '../agent-api/client';
import { Redactor } from '../agent-api/redaction';
import { type Problem, problemText } from '../contract/checks';
import { pluralize } from '../contract/text';
import {
  ConfigurationError,
  type Environment,
  loadTemporalConfig,
  readVariable,
} from '../temporal/connection-config';
import { configureConnection, loadPlugins } from '../temporal/plugins';
import { checkVariables, readDefinedVariables, type DefinedVariables } from './variables';

export type LoadedConfig = Awaited<ReturnType<typeof loadConfig>>;
export type WorkerConfig = LoadedConfig['config'];

/** The variables that name a file with a secret. The worker reads these files again while it runs. */
export type SecretFileVariable = 'AGENT_API_KEY_FILE' | 'FOLLOW_UP_NOTIFY_SECRET_FILE';

/**
 * Called with the problem, once for each change of a secret file after which the file can't be used. Called with undefined when
 * the file can be used again. The problem contains no part of the file.
 */
type ReportSecretFile = (variable: SecretFileVariable, problem: string | undefined) => void;

/**
 * Reads and checks the whole configuration. No other code of the worker reads the environment.
 *
 * @param reportSecretFile called while the worker runs
 * @returns the configuration, the part of it that may be logged, a redactor for its secrets, and warnings about probable mistakes
 * @throws ConfigurationError, which names every problem at once
 */
export async function loadConfig(env: Environment, reportSecretFile: ReportSecretFile = () => undefined) {
  const variables = readDefinedVariables(env);
  const given = [variables.AGENT_API_KEY, env.TEMPORAL_API_KEY].filter((secret) => secret !== undefined);
  const [values, { temporal, plugins }, key, proxy, secrets] = await loadAll([
    () => checkVariables(variables),
    () => loadTemporal(env),
    () => loadApiKey(variables, reportSecretFile),
    () => loadProxy(env),
    () => loadNotifySecrets(variables, reportSecretFile),
  ]).catch((error: unknown) => {
    throw redactProblems(error, given);
  });
  const password = decodeURIComponent(new URL(proxy?.url ?? 'http://none').password);
  const redactor = new Redactor([...given, ...temporal.secrets, password], '[withheld: contains a secret]');
  /** Adds each value of a source to the redactor. @param split returns the secrets of a value */
  const redactingSource = async (
    source: SecretSource,
    split = (value: string) => [value],
  ): Promise<SecretSource> => {
    const current = async () => {
      const value = await source.current();
      for (const secret of split(value)) redactor.addKey(secret);
      return value;
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
    notify: notifyUrl &&
      secrets && {
        url: notifyUrl.href,
        secrets: await redactingSource(secrets, (value) => value.split(',')),
      },
    health: values.FOLLOW_UP_HEALTH_ADDRESS,
    metrics: values.FOLLOW_UP_METRICS_ADDRESS,
    logLevel: values.LOG_LEVEL,
    plugins,
  };
  /** The configured values without secrets, for one log line. The path and the query of the notify URL may contain a token. */
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
    loggableConfig,
    redactor,
    warnings: isPlaintext ? [PLAINTEXT_WARNING] : [],
  };
}

/** Matches the host names of this machine: `localhost` and its subdomains (RFC 6761), 127.0.0.0/8, and ::1. */
const LOOPBACK = /^(?:(?:.+\.)?localhost|127(?:\.\d+){3}|\[::1\])$/;

const PLAINTEXT_WARNING =
  'AGENT_API_BASE_URL is an http:// URL of another machine, so the API key and every prompt are sent unencrypted; use https://';

/** Waits for all parts. @throws ConfigurationError with the problems of all parts */
export async function loadAll<T extends readonly unknown[]>(parts: {
  [K in keyof T]: () => T[K] | Promise<T[K]>;
}): Promise<T> {
  const results = await Promise.allSettled(parts.map((part) => Promise.resolve().then(part)));
  const reasons = results.flatMap((result) =>
    result.status === 'rejected' ? [result.reason as unknown] : [],
  );
  const problems = reasons.flatMap((reason) => (reason instanceof ConfigurationError ? reason.problems : []));
  if (problems.length > 0) throw new ConfigurationError(problems);
  if (reasons.length > 0) throw reasons[0];
  return results.map((result) => (result.status === 'fulfilled' ? result.value : undefined)) as unknown as T;
}

/** Returns a configuration error whose problems show no secret, and any other error unchanged. */
function redactProblems(error: unknown, secrets: readonly string[]): unknown {
  if (!(error instanceof ConfigurationError)) return error;
  const { redact } = new Redactor(secrets);
  return new ConfigurationError(error.problems.map(({ field, text }) => ({ field, text: redact(text) })));
}

/** Loads the plugins, and the settings of the connection after the plugins have changed them. */
async function loadTemporal(env: Environment) {
  const [temporal, plugins] = await loadAll([() => loadTemporalConfig(env), () => loadPlugins(env)]);
  try {
    const connection = configureConnection(plugins, 'configureNativeConnection', temporal.connection);
    const keys = typeof connection.apiKey === 'string' ? [connection.apiKey] : [];
    return { temporal: { ...temporal, connection, secrets: [...temporal.secrets, ...keys] }, plugins };
  } catch (error) {
    throw redactProblems(error, temporal.secrets);
  }
}

export function configurationText(problems: readonly Problem[]): string {
  const lines = problems.map((problem) => `  ${problemText(problem)}\n`).join('');
  const count = pluralize(problems.length, 'problem');
  return `The worker cannot start: its configuration has ${count} (see docs/configuration.md or --help).\n${lines}`;
}

async function loadApiKey(
  { AGENT_API_KEY: text, AGENT_API_KEY_FILE: path }: DefinedVariables,
  report: ReportSecretFile,
) {
  if (text !== undefined && path === undefined) return readSecret('AGENT_API_KEY', () => keyFromText(text));
  if (text === undefined && path !== undefined) {
    return readSecretFile('AGENT_API_KEY_FILE', path, report);
  }
  const problem = text === undefined ? 'neither is set' : 'both are set';
  const action = 'set one of them: the admin key of the agent service, or the path of a file with the key';
  throw new ConfigurationError([
    { field: 'AGENT_API_KEY, AGENT_API_KEY_FILE', text: `${problem}; ${action}` },
  ]);
}

async function loadNotifySecrets(
  { FOLLOW_UP_NOTIFY_SECRET_FILE: path }: DefinedVariables,
  report: ReportSecretFile,
) {
  if (path === undefined) return undefined;
  return readSecretFile('FOLLOW_UP_NOTIFY_SECRET_FILE', path, report, parseSecrets);
}

function readSecretFile(
  field: SecretFileVariable,
  path: string,
  report: ReportSecretFile,
  parse?: typeof parseSecrets,
) {
  const onProblem = (problem?: string) => {
    report(field, problem);
  };
  return readSecret(field, () => keyFromFile(path, { onProblem, ...(parse && { parse }) }));
}

/**
 * Reads a secret.
 *
 * @throws ConfigurationError, which does not show the path of a file. An operator may have put the secret into the wrong variable.
 */
async function readSecret(field: string, read: () => SecretSource | Promise<SecretSource>) {
  try {
    return await read();
  } catch (error) {
    throw error instanceof SecretError ? new ConfigurationError([{ field, text: error.problem }]) : error;
  }
}

/**
 * Reads the proxy for https base URLs. As in other programs, the variable in lower case has precedence.
 *
 * @throws ConfigurationError, which does not show the value
 */
function loadProxy(env: Environment): Proxy | undefined {
  const either = (name: string) => readVariable(env, name.toLowerCase()) ?? readVariable(env, name);
  const text = either('HTTPS_PROXY');
  if (text === undefined) return undefined;
  try {
    const url = new URL(text.includes('://') ? text : `http://${text}`);
    // Throws if the user name or the password has a lone %. Otherwise, the HTTP client would throw at the first request.
    decodeURIComponent(url.username + url.password);
    if (/^https?:$/.test(url.protocol)) return { url: url.href, noProxy: either('NO_PROXY') ?? '' };
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof URIError)) throw error;
  }
  const problem =
    'is not the URL of a proxy; set it to http://host:port or https://host:port. If the proxy needs credentials, put ' +
    'user:password@ before the host, and write % as %25';
  throw new ConfigurationError([{ field: 'HTTPS_PROXY', text: problem }]);
}

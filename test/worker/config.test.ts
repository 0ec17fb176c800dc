import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { temporaryFolder } from '../harness/temporary-folder';
import { ConfigurationError } from '../../src/temporal/connection-config';
import { configurationText, loadConfig } from '../../src/worker/config';

const KEY = 'svc_3f9c1e77aa5b4d20';
const GOOD = { AGENT_API_BASE_URL: 'https://agents.example.com', AGENT_API_KEY: KEY };

const folder = temporaryFolder();

function fileHolding(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const NOTIFY_URL = 'https://hooks.example.com/follow-ups?token=of-theirs';
const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
const notifyEnv = (FOLLOW_UP_NOTIFY_URL: string, secrets = SECRET) => ({
  FOLLOW_UP_NOTIFY_URL,
  FOLLOW_UP_NOTIFY_SECRET_FILE: fileHolding(`notify-${secrets.length}`, secrets),
});

async function problemsOf(env: Record<string, string>): Promise<string> {
  try {
    await loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigurationError) return configurationText(error.problems);
    throw error;
  }
  return '';
}

it('the base URL and an API key are a complete configuration', async () => {
  const unused = { HTTPS_PROXY: '', HTTP_PROXY: 'http://proxy.corp:3128' };
  const { config, warnings } = await loadConfig({ ...GOOD, ...unused });
  expect(config).toMatchObject({
    temporal: { address: 'localhost:7233', namespace: 'default' },
    agentApi: { baseUrl: 'https://agents.example.com/', timeoutMs: 30_000, proxy: undefined },
    taskQueues: { followUp: 'follow-up', read: 'agent-api-read', send: 'agent-api-send' },
    health: { host: '127.0.0.1', port: 9465, isSetByOperator: false },
    metrics: { host: '127.0.0.1', port: 9464, isSetByOperator: false },
    logLevel: 'info',
    deploymentVersion: undefined,
    notify: undefined,
  });
  expect(await config.agentApi.apiKey.current()).toBe(KEY);
  expect(warnings).toEqual([]);
});

// test/end-to-end/manifests.test.ts covers the variables of Temporal and of Worker Versioning.
it('loads the value of every variable', async () => {
  const { config } = await loadConfig({
    AGENT_API_BASE_URL: 'http://127.0.0.1:4010/prefix/',
    AGENT_API_TIMEOUT: '2m',
    AGENT_API_KEY_FILE: fileHolding('key', `${KEY}\n`),
    FOLLOW_UP_TASK_QUEUE: 'a',
    AGENT_API_READ_TASK_QUEUE: 'b',
    AGENT_API_SEND_TASK_QUEUE: 'c',
    FOLLOW_UP_HEALTH_ADDRESS: '[::1]:8080',
    FOLLOW_UP_METRICS_ADDRESS: 'off',
    LOG_LEVEL: 'DEBUG',
    HTTPS_PROXY: 'proxy.corp:3128',
    NO_PROXY: '.corp',
  });
  const proxy = { url: 'http://proxy.corp:3128/', noProxy: '.corp' };
  expect(config).toMatchObject({
    agentApi: { baseUrl: 'http://127.0.0.1:4010/prefix/', timeoutMs: 120_000, proxy },
    taskQueues: { followUp: 'a', read: 'b', send: 'c' },
    health: { host: '::1', port: 8080, isSetByOperator: true },
    metrics: 'off',
    logLevel: 'debug',
  });
  expect(await config.agentApi.apiKey.current()).toBe(KEY);
});

it('reports every problem of the configuration in one message', async () => {
  const env = { AGENT_API_TIMEOUT: '30', LOG_LEVEL: 'loud', TEMPORAL_ADDRESS: 'http://localhost:7233' };
  const message = await problemsOf(env);
  expect(message).toContain('its configuration has 5 problems');
  for (const name of [...Object.keys(env), 'AGENT_API_BASE_URL', 'AGENT_API_KEY, AGENT_API_KEY_FILE'])
    expect(message).toContain(`\n  ${name}: `);
});

const version = { TEMPORAL_DEPLOYMENT_NAME: 'follow-up', TEMPORAL_WORKER_BUILD_ID: '1' };
it.each<[Record<string, string>, string]>([
  [{ AGENT_API_BASE_URL: 'agents.example.com' }, 'AGENT_API_BASE_URL: must be an http:// or https:// URL'],
  [{ AGENT_API_BASE_URL: 'https://me:hunter-two@agents.example.com' }, 'URL without user name, password'],
  [{ AGENT_API_BASE_URL: 'https://agents.example.com/?a=b' }, 'query and fragment; set it to the base URL'],
  [{ AGENT_API_TIMEOUT: '0.9s' }, 'AGENT_API_TIMEOUT: must be between 1s and 10m; it is 900ms'],
  [{ LOG_LEVEL: 'loud' }, 'LOG_LEVEL: must be one of trace, debug, info, warn, error'],
  [
    { AGENT_API_SEND_TASK_QUEUE: 'agent-api-read' },
    'is "agent-api-read", the same as AGENT_API_READ_TASK_QUEUE',
  ],
  [{ FOLLOW_UP_HEALTH_ADDRESS: '9465' }, 'FOLLOW_UP_HEALTH_ADDRESS: is not host:port'],
  [{ FOLLOW_UP_METRICS_ADDRESS: '127.0.0.1:0' }, 'is not an IP address with a port above 0'],
  [{ TEMPORAL_ADDRESS: 'localhost:0' }, 'TEMPORAL_ADDRESS: is not host:port'],
  [{ FOLLOW_UP_METRICS_ADDRESS: 'metrics.example:9464' }, 'is not an IP address'],
  [{ HTTPS_PROXY: 'socks5://me:hunter-two@proxy' }, 'set it to http://host:port'],
  [{ TEMPORAL_DEPLOYMENT_NAME: 'follow-up' }, 'TEMPORAL_WORKER_BUILD_ID: is not set'],
  [{ TEMPORAL_WORKER_BUILD_ID: '1.0.0' }, 'TEMPORAL_DEPLOYMENT_NAME: is not set'],
  // Temporal does not allow these characters in a deployment name.
  [{ ...version, TEMPORAL_DEPLOYMENT_NAME: 'a.b' }, 'TEMPORAL_DEPLOYMENT_NAME: has a dot or a colon'],
  [{ AGENT_API_KEY: `${KEY} ${KEY}` }, 'AGENT_API_KEY: must contain only the secret'],
  [
    { AGENT_API_KEY: '', AGENT_API_KEY_FILE: KEY },
    "AGENT_API_KEY_FILE: can't be read: ENOENT; set it to the path of a readable file",
  ],
  [{ AGENT_API_KEY: 'another-one', AGENT_API_BASE_URL: KEY }, 'AGENT_API_BASE_URL: must be an http'],
  [
    { TEMPORAL_CONFIG_FILE: fileHolding('toml', `[profile.default]\napi_key = "${KEY}\n`) },
    'temporal.toml: Invalid TOML',
  ],
  [{ AGENT_API_KEY_FILE: 'key' }, 'AGENT_API_KEY, AGENT_API_KEY_FILE: both are set'],
  [{ TEMPORAL_NAMESPACE: '  ' }, 'TEMPORAL_NAMESPACE: is blank'],
  [{ TEMPORAL_PROFILE: 'nowhere' }, 'the file has no table [profile.nowhere]'],
  [{ TEMPORAL_TLS_CLIENT_CERT_DATA: 'pem' }, 'mutual TLS needs the certificate and its key'],
  [{ FOLLOW_UP_PLUGINS: join(folder, 'nowhere.js') }, 'FOLLOW_UP_PLUGINS: /'],
  [{ FOLLOW_UP_PLUGINS: ',' }, 'FOLLOW_UP_PLUGINS: has an empty entry; remove the extra comma'],
  [{ FOLLOW_UP_DATA_CONVERTER: './converter.js' }, 'FOLLOW_UP_DATA_CONVERTER: is not a variable of this'],
  [{ FOLLOW_UP_PLUGIN: './plugin.js' }, 'rename it to FOLLOW_UP_PLUGINS, or unset it'],
  [notifyEnv('hooks'), 'FOLLOW_UP_NOTIFY_URL: must be an http'],
  [notifyEnv('https://me:hunter-two@hooks.example.com'), 'without user name and password'],
  [{ FOLLOW_UP_NOTIFY_URL: NOTIFY_URL }, 'FOLLOW_UP_NOTIFY_SECRET_FILE: is not set, but'],
  [notifyEnv(NOTIFY_URL, 'whsec_not-a-secret-of-theirs-at-all!'), 'whsec_ and 24 to 64 bytes'],
  [notifyEnv(NOTIFY_URL, `${SECRET},${SECRET},${SECRET}`), 'must have one secret, or two'],
  [notifyEnv(NOTIFY_URL, `${SECRET}\n${SECRET}`), 'without white space: whsec_ and'],
])('rejects the configuration with %j, without showing a secret', async (env, problem) => {
  const message = await problemsOf({ ...GOOD, ...env });
  expect(message).toContain('its configuration has 1 problem ');
  expect(message).toContain(problem);
  expect(message).not.toMatch(/hunter-two|of-theirs|whsec_[A-Z]|3f9c1e77/);
});

it('reports a secret file that was changed and can’t be used, and keeps the last valid secret in use', async () => {
  const files = { AGENT_API_KEY_FILE: fileHolding('rotated-key', KEY), ...notifyEnv(NOTIFY_URL) };
  const reports: unknown[] = [];
  const env = { ...GOOD, AGENT_API_KEY: '', ...files };
  const { config } = await loadConfig(env, (...report) => reports.push(report));
  // The text is a valid key of the agent service, but not a signing secret.
  for (const name of ['AGENT_API_KEY_FILE', 'FOLLOW_UP_NOTIFY_SECRET_FILE'] as const)
    writeFileSync(files[name], name === 'AGENT_API_KEY_FILE' ? '\n' : 'another-secret-of-theirs');
  for (let n = 0; n < 2; n += 1) {
    expect(await config.agentApi.apiKey.current()).toBe(KEY);
    expect(await config.notify?.secrets.current()).toBe(SECRET);
  }
  expect(reports).toEqual([
    ['AGENT_API_KEY_FILE', expect.stringMatching(/^is empty/)],
    ['FOLLOW_UP_NOTIFY_SECRET_FILE', expect.stringMatching(/^must have one secret, or two/)],
  ]);
});

it('warns if the API key would be sent unencrypted to another machine', async () => {
  const warn = async (url: string) => (await loadConfig({ ...GOOD, AGENT_API_BASE_URL: url })).warnings;
  expect(await warn('http://agents.example.com')).toEqual([expect.stringContaining('unencrypted')]);
  const good = ['http://localhost:4010', 'http://127.1.2.3', 'http://[::1]:80', 'https://agents.example.com'];
  for (const host of good) expect(await warn(host)).toEqual([]);
});

it('an API key in a file is one secret, although it has a comma', async () => {
  const key = 'ab12,cd34,production';
  const { redactor } = await loadConfig({
    ...GOOD,
    AGENT_API_KEY: '',
    AGENT_API_KEY_FILE: fileHolding('key-with-commas', key),
  });
  expect(redactor.redact(`it is ${key}`)).toBe('[withheld: contains a secret]');
  expect(redactor.redact('deployed to production')).toBe('deployed to production');
});

it('the loggable configuration has no secret, and the redactor withholds texts with any secret of the configuration', async () => {
  const secrets = `${SECRET},whsec_${Buffer.alloc(64, 8).toString('base64')}`;
  const HTTPS_PROXY = 'http://me:hunter%2Ftwo@proxy:3128/';
  const env = { ...GOOD, TEMPORAL_API_KEY: 'temporal-key', HTTPS_PROXY, ...notifyEnv(NOTIFY_URL, secrets) };
  const { config, loggableConfig, redactor } = await loadConfig(env);
  expect(config.agentApi.proxy?.url).toBe(HTTPS_PROXY);
  expect(config.notify?.url).toBe(NOTIFY_URL);
  expect(await config.notify?.secrets.current()).toBe(secrets);
  expect(loggableConfig).toMatchObject({
    AGENT_API_KEY: 'set',
    HTTPS_PROXY: 'proxy:3128',
    FOLLOW_UP_NOTIFY_URL: 'https://hooks.example.com',
    temporal: 'localhost:7233, namespace default, TLS on',
  });
  for (const secret of [KEY, 'temporal-key', 'hunter%2Ftwo', 'hunter/two', ...secrets.split(',')]) {
    expect(JSON.stringify(loggableConfig)).not.toContain(secret);
    expect(redactor.redact(`it is ${secret}`)).toBe('[withheld: contains a secret]');
  }
});

it('redacts the value of a TEMPORAL_GRPC_META variable only if the header name indicates a secret', async () => {
  const secrets = ['AUTHORIZATION', 'X_ACCESS_TOKEN', 'X_API_KEY', 'CLIENT_SECRET'];
  const env: Record<string, string> = {};
  for (const name of [...secrets, 'X_ENV']) env[`TEMPORAL_GRPC_META_${name}`] = `production-of-${name}`;
  const { redactor } = await loadConfig({ ...GOOD, ...env });
  for (const name of secrets)
    expect(redactor.redact(`production-of-${name}`)).toBe('[withheld: contains a secret]');
  expect(redactor.redact('production-of-X_ENV')).toBe('production-of-X_ENV');
});

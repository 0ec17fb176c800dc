import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ConfigurationError, describeConfig, loadConfig } from '../../../src/worker/config';

const KEY = 'svc_3f9c1e77aa5b4d20';
const GOOD = { AGENT_API_BASE_URL: 'https://agents.example.com', AGENT_API_KEY: KEY };

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'worker-config-'));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

function fileHolding(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

async function problemsOf(env: Record<string, string>): Promise<string> {
  try {
    await loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message;
    throw error;
  }
  return '';
}

describe('the configuration', () => {
  it('needs nothing but the base URL and a key', async () => {
    const { config, warnings } = await loadConfig(GOOD);
    expect(config).toMatchObject({
      temporal: { address: 'localhost:7233', namespace: 'default' },
      agentApi: { baseUrl: 'https://agents.example.com/', timeoutMs: 30_000 },
      taskQueues: { followUp: 'follow-up', read: 'agent-api', send: 'agent-api-send' },
      health: { address: { host: '127.0.0.1', port: 9465 }, chosen: false },
      metrics: { address: { host: '127.0.0.1', port: 9464 }, chosen: false },
      logLevel: 'info',
    });
    expect(await config.agentApi.apiKey.current()).toBe(KEY);
    expect(warnings).toEqual([]);
  });

  it('takes every variable', async () => {
    const { config } = await loadConfig({
      AGENT_API_BASE_URL: 'http://127.0.0.1:4010/prefix/',
      AGENT_API_KEY_FILE: fileHolding('key', `${KEY}\n`),
      AGENT_API_TIMEOUT: '2m',
      FOLLOW_UP_TASK_QUEUE: 'a',
      AGENT_API_TASK_QUEUE: 'b',
      AGENT_API_SEND_TASK_QUEUE: 'c',
      FOLLOW_UP_HEALTH_ADDRESS: '[::1]:8080',
      FOLLOW_UP_METRICS_ADDRESS: 'off',
      LOG_LEVEL: 'DEBUG',
      TEMPORAL_ADDRESS: 'temporal.example.com:443',
      TEMPORAL_NAMESPACE: 'agents',
      TEMPORAL_API_KEY: 'temporal-key',
    });
    expect(config).toMatchObject({
      temporal: {
        address: 'temporal.example.com:443',
        namespace: 'agents',
        connection: { apiKey: 'temporal-key', tls: true },
      },
      agentApi: { baseUrl: 'http://127.0.0.1:4010/prefix/', timeoutMs: 120_000 },
      taskQueues: { followUp: 'a', read: 'b', send: 'c' },
      health: { address: { host: '::1', port: 8080 }, chosen: true },
      metrics: 'off',
      logLevel: 'debug',
    });
    expect(await config.agentApi.apiKey.current()).toBe(KEY);
  });

  it('counts an empty variable as not set', async () => {
    const { config } = await loadConfig({
      ...GOOD,
      AGENT_API_KEY_FILE: '',
      AGENT_API_TIMEOUT: '',
      TEMPORAL_ADDRESS: '',
    });
    expect(config).toMatchObject({
      agentApi: { timeoutMs: 30_000 },
      temporal: { address: 'localhost:7233' },
    });
  });

  it('names every problem in one message', async () => {
    const message = await problemsOf({
      AGENT_API_BASE_URL: 'ftp://agents.example.com',
      AGENT_API_TIMEOUT: '30',
      AGENT_API_TASK_QUEUE: 'follow-up',
      FOLLOW_UP_HEALTH_ADDRESS: '9465',
      FOLLOW_UP_METRICS_ADDRESS: '127.0.0.1',
      LOG_LEVEL: 'loud',
      TEMPORAL_ADDRESS: 'http://localhost:7233',
    });
    expect(message).toContain('its configuration has 8 problems');
    for (const name of [
      'AGENT_API_BASE_URL: has a scheme that is not HTTP',
      'AGENT_API_KEY: is not set',
      'AGENT_API_TIMEOUT: "30" needs a unit',
      'AGENT_API_TASK_QUEUE: is "follow-up" as FOLLOW_UP_TASK_QUEUE is',
      'FOLLOW_UP_HEALTH_ADDRESS: is a port without a host',
      'FOLLOW_UP_METRICS_ADDRESS: has no port',
      'LOG_LEVEL: must be one of trace, debug, info, warn, error',
      'TEMPORAL_ADDRESS: is not host:port',
    ]) {
      expect(message).toContain(name);
    }
  });

  it.each([
    ['AGENT_API_BASE_URL', 'agents.example.com', 'is not a URL'],
    ['AGENT_API_BASE_URL', 'file:///etc/passwd', 'has a scheme that is not HTTP'],
    ['AGENT_API_BASE_URL', 'https://me:secret@agents.example.com', 'holds a user name or password'],
    ['AGENT_API_BASE_URL', 'https://agents.example.com/?a=b', 'has a query'],
    ['AGENT_API_BASE_URL', 'https://agents.example.com/?', 'has a query'],
    ['AGENT_API_BASE_URL', 'https://agents.example.com/#top', 'has a fragment'],
    ['AGENT_API_TIMEOUT', '0.9s', 'must be between 1s and 10m; it is 900ms'],
    ['AGENT_API_TIMEOUT', '11m', 'must be between 1s and 10m; it is 11m'],
    ['AGENT_API_TIMEOUT', 'soon', 'is not a duration'],
    ['FOLLOW_UP_TASK_QUEUE', '/_sys/x', 'begins with /_sys/'],
    ['AGENT_API_SEND_TASK_QUEUE', 'agent-api', 'is "agent-api" as AGENT_API_TASK_QUEUE is'],
    ['FOLLOW_UP_HEALTH_ADDRESS', '::1:9465', 'IPv6 address without brackets'],
    ['FOLLOW_UP_HEALTH_ADDRESS', 'localhost:99999', 'port above 65535'],
    ['FOLLOW_UP_HEALTH_ADDRESS', 'http://localhost:1', 'is not an address'],
    ['FOLLOW_UP_METRICS_ADDRESS', '127.0.0.1:0', 'has port 0'],
    ['FOLLOW_UP_METRICS_ADDRESS', '127.0.0.1:9465', 'as FOLLOW_UP_HEALTH_ADDRESS is'],
    ['AGENT_API_KEY', 'two words', 'must hold the admin key alone'],
    ['TEMPORAL_ADDRESS', 'localhost:0', 'is not host:port'],
    ['TEMPORAL_NAMESPACE', '  ', 'is blank'],
    ['TEMPORAL_PROFILE', 'nowhere', "Profile 'nowhere' not found"],
    ['TEMPORAL_TLS_SERVER_CA_CERT_PATH', '/no/such/ca.pem', 'ENOENT'],
    ['TEMPORAL_TLS_CLIENT_CERT_DATA', 'pem', 'mutual TLS needs the certificate and its key'],
  ])('refuses %s=%s', async (name, value, problem) => {
    const message = await problemsOf({ ...GOOD, [name]: value });
    expect(message).toContain('its configuration has a problem.');
    expect(message).toContain(name.replace(/^TEMPORAL_(PROFILE|TLS).*/, 'TEMPORAL_'));
    expect(message).toContain(problem);
  });
});

it('an empty profile file is called by its name', async () => {
  const message = await problemsOf({ ...GOOD, TEMPORAL_CONFIG_FILE: fileHolding('empty.toml', '') });
  expect(message).toContain('temporal.toml: the file holds no [profile.NAME] table');
});

describe('the key', () => {
  it('comes from one variable, not from two', async () => {
    const message = await problemsOf({ ...GOOD, AGENT_API_KEY_FILE: fileHolding('other', 'svc_other') });
    expect(message).toContain('AGENT_API_KEY, AGENT_API_KEY_FILE: both are set');
  });

  it('is looked for in its file at the start', async () => {
    const without = { AGENT_API_BASE_URL: GOOD.AGENT_API_BASE_URL };
    const missing = join(folder, 'missing');
    expect(await problemsOf({ ...without, AGENT_API_KEY_FILE: missing })).toMatch(
      /AGENT_API_KEY_FILE: .*missing.*can't be read/,
    );
    const empty = fileHolding('empty', '\n');
    expect(await problemsOf({ ...without, AGENT_API_KEY_FILE: empty })).toMatch(
      /AGENT_API_KEY_FILE: .*is empty/,
    );
    expect(await problemsOf({ ...without, AGENT_API_KEY_FILE: folder })).toMatch(
      /AGENT_API_KEY_FILE: .*not a regular file/,
    );
  });

  it('is refused where it is too short to be removed from messages, which stay readable', async () => {
    const message = await problemsOf({ ...GOOD, AGENT_API_KEY: 'k', AGENT_API_TIMEOUT: 'k' });
    expect(message).toContain('AGENT_API_KEY: AGENT_API_KEY holds 1 characters; a key has at least 8');
    expect(message).not.toContain('[key]');
  });

  it('appears in no message, wherever it was put by mistake', async () => {
    const file = fileHolding('toml', `[profile.default]\napi_key = "${KEY}\n`);
    const misplaced = [
      { AGENT_API_BASE_URL: KEY, AGENT_API_KEY: KEY },
      { AGENT_API_BASE_URL: `https://${KEY}@agents.example.com`, AGENT_API_KEY: KEY },
      { AGENT_API_BASE_URL: KEY },
      { AGENT_API_BASE_URL: `${KEY}://x` },
      { ...GOOD, AGENT_API_KEY: `${KEY} ${KEY}` },
      { AGENT_API_BASE_URL: GOOD.AGENT_API_BASE_URL, AGENT_API_KEY_FILE: KEY },
      { ...GOOD, TEMPORAL_CONFIG_FILE: file },
    ];
    for (const env of misplaced) {
      const message = await problemsOf(env);
      expect(message).toContain('The worker cannot start');
      expect(message).not.toContain('3f9c1e77');
    }
  });

  it('appears neither in the description of the configuration nor in what the redactor lets through', async () => {
    const { config, redactor } = await loadConfig({ ...GOOD, TEMPORAL_API_KEY: 'temporal-key' });
    expect(JSON.stringify(describeConfig(config))).not.toMatch(/3f9c1e77|temporal-key/);
    expect(describeConfig(config)).toMatchObject({ agentApiKey: 'from AGENT_API_KEY', tls: 'on' });
    expect(redactor.text(`${KEY} temporal-key`)).not.toMatch(/3f9c1e77|temporal-key/);
  });

  it('is redacted after a rotation too, the new one and the old one', async () => {
    const file = fileHolding('rotated', KEY);
    const { config, redactor } = await loadConfig({
      AGENT_API_BASE_URL: GOOD.AGENT_API_BASE_URL,
      AGENT_API_KEY_FILE: file,
    });
    writeFileSync(file, 'svc_secondkey');
    expect(await config.agentApi.apiKey.current()).toBe('svc_secondkey');
    expect(redactor.text(`${KEY} then svc_secondkey`)).not.toMatch(/3f9c1e77|secondkey/);
  });
});

describe('the proxy of the agent service', () => {
  const proxyOf = async (env: Record<string, string>) =>
    (await loadConfig({ ...GOOD, ...env })).config.agentApi.proxy;

  it.each([
    [{ HTTPS_PROXY: 'http://proxy.corp:3128' }, { url: 'http://proxy.corp:3128/', noProxy: '' }],
    [
      { HTTPS_PROXY: 'proxy.corp:3128', NO_PROXY: '.corp' },
      { url: 'http://proxy.corp:3128/', noProxy: '.corp' },
    ],
    [
      { https_proxy: 'https://lower', HTTPS_PROXY: 'http://upper' },
      { url: 'https://lower/', noProxy: '' },
    ],
    [{ HTTPS_PROXY: '', NO_PROXY: '*' }, undefined],
    [{ HTTP_PROXY: 'http://proxy.corp:3128' }, undefined],
  ])('is taken from %j', async (env, proxy) => {
    expect(await proxyOf(env)).toEqual(proxy);
  });

  it.each(['socks5://me:hunter-two@proxy', 'http://me:hunter-two%@proxy', 'http://me:hunter-two@:99999'])(
    'is refused without being shown: %s',
    async (HTTPS_PROXY) => {
      const message = await problemsOf({ ...GOOD, HTTPS_PROXY });
      expect(message).toMatch(/HTTPS_PROXY: .*; give http:\/\/host:port/);
      expect(message).not.toContain('hunter-two');
    },
  );

  it('is named in the description of the configuration, and its password is shown nowhere', async () => {
    const { config, redactor } = await loadConfig({
      ...GOOD,
      HTTPS_PROXY: 'http://me:hunter%2Ftwo@proxy:3128',
    });
    expect(describeConfig(config).agentApiProxy).toBe('proxy:3128');
    expect(JSON.stringify(describeConfig(config))).not.toContain('hunter');
    expect(redactor.text('hunter%2Ftwo hunter/two')).not.toContain('hunter');
  });
});

describe('warnings', () => {
  it('are given for a key that would travel in clear to another machine', async () => {
    const warn = async (url: string) => (await loadConfig({ ...GOOD, AGENT_API_BASE_URL: url })).warnings;
    expect(await warn('http://agents.example.com')).toEqual([expect.stringContaining('unencrypted')]);
    for (const url of [
      'http://localhost:4010',
      'http://127.1.2.3',
      'http://[::1]:80',
      'https://agents.example.com',
    ]) {
      expect(await warn(url)).toEqual([]);
    }
  });
});

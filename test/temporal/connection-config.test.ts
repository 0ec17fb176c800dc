import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { type ConfigurationError, loadTemporalConfig } from '../../src/temporal/connection-config';
import { selfSignedCertificate } from '../agent-api/self-signed-certificate';
import { temporaryFolder } from '../harness/temporary-folder';

const folder = temporaryFolder();
const { cert, key } = selfSignedCertificate();

function fileWith(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const CERT_FILE = fileWith('cert.pem', cert);
const KEY_FILE = fileWith('key.pem', key);
const SECRET = 'eyJhbGciOiJFUzI1NiJ9.c2VjcmV0';

/** Returns the variable for a profile with the lines. */
let profiles = 0;
const profile = (lines: string) => ({
  TEMPORAL_CONFIG_FILE: fileWith(`temporal-${++profiles}.toml`, `[profile.default]\n${lines}\n`),
});
/** A file that does not exist, so that the machine's own profile is not used. */
const NO_PROFILE = { TEMPORAL_CONFIG_FILE: join(folder, 'none.toml') };

const connectionOf = (env: Record<string, string>) =>
  loadTemporalConfig({ ...NO_PROFILE, ...env }).connection;

it.each<[string, Record<string, string>, object]>([
  [
    'an API key with the line break of its file',
    { TEMPORAL_API_KEY: ` ${SECRET}\r\n` },
    { apiKey: SECRET, tls: true },
  ],
  ['white space around the address', { TEMPORAL_ADDRESS: 'temporal:7233\n' }, { address: 'temporal:7233' }],
  ['TEMPORAL_TLS=TRUE', { TEMPORAL_TLS: 'TRUE' }, { tls: expect.any(Object) }],
  ['TEMPORAL_TLS=1', { TEMPORAL_TLS: '1' }, { tls: expect.any(Object) }],
  ['TEMPORAL_TLS=False', { TEMPORAL_TLS: 'False', TEMPORAL_API_KEY: SECRET }, { tls: false }],
  ['TEMPORAL_TLS=0', { TEMPORAL_TLS: '0', TEMPORAL_API_KEY: SECRET }, { tls: false }],
  ['no variable', { TEMPORAL_TLS: '' }, { tls: undefined, apiKey: undefined, address: 'localhost:7233' }],
  [
    'host verification that is not disabled',
    { TEMPORAL_TLS_DISABLE_HOST_VERIFICATION: 'false' },
    { tls: expect.any(Object) },
  ],
  [
    'the paths of the files of TLS',
    { TEMPORAL_TLS_CLIENT_CERT_PATH: CERT_FILE, TEMPORAL_TLS_CLIENT_KEY_PATH: `${KEY_FILE}\n` },
    { tls: { clientCertPair: { crt: Buffer.from(cert), key: Buffer.from(key) } } },
  ],
  [
    'a header with several underscores',
    { TEMPORAL_GRPC_META_X_API_KEY: `${SECRET}\n` },
    { metadata: { 'x-api-key': SECRET } },
  ],
  [
    'headers of a profile, of which variables change one and remove one',
    {
      ...profile('grpc_meta = { X_Team_Name = "a", X_Old_Name = "b", other = "c" }'),
      TEMPORAL_GRPC_META_X_TEAM_NAME: 'd',
      TEMPORAL_GRPC_META_X_OLD_NAME: '',
    },
    { metadata: { 'x-team-name': 'd', other: 'c' } },
  ],
  ['an API key of a profile', profile(`api_key = "${SECRET}\\n"`), { apiKey: SECRET, tls: true }],
  [
    'a codec server next to a plugin',
    { TEMPORAL_CODEC_ENDPOINT: 'https://codec', FOLLOW_UP_PLUGINS: './plugin.js' },
    {},
  ],
  [
    'variables of a Kubernetes service',
    { TEMPORAL_TLS_SERVICE_HOST: '10.0.0.1', TEMPORAL_TLS_PORT: 'tcp://10.0.0.1:1' },
    {},
  ],
  ['variables of other programs', { TEMPORAL_UI_URL: 'http://ui', TEMPORAL_CLI_PATH: '/bin/temporal' }, {}],
])('connects with %s', (_, env, expected) => {
  expect(connectionOf(env)).toMatchObject(expected);
});

const both = (name: string) => ({ [`${name}_PATH`]: CERT_FILE, [`${name}_DATA`]: cert });
it.each<[string, Record<string, string>, RegExp]>([
  ['an API key of white space', { TEMPORAL_API_KEY: '\n' }, /^TEMPORAL_API_KEY: is blank/],
  [
    'two API keys',
    { TEMPORAL_API_KEY: `${SECRET}\n${SECRET}` },
    /^TEMPORAL_API_KEY: has white space or a char/,
  ],
  [
    'an API key with another character',
    { TEMPORAL_API_KEY: `${SECRET}é` },
    /^TEMPORAL_API_KEY: .*printable ASCII/,
  ],
  [
    'an API key of a profile with a space',
    profile(`api_key = "Bearer ${SECRET}"`),
    /^temporal\.toml: api_key has/,
  ],
  ['TEMPORAL_TLS=yes', { TEMPORAL_TLS: 'yes' }, /^TEMPORAL_TLS: must be true, 1, false or 0$/],
  [
    'TEMPORAL_TLS_DISABLE_HOST_VERIFICATION=on',
    { TEMPORAL_TLS_DISABLE_HOST_VERIFICATION: 'on' },
    /^TEMPORAL_TLS_DISABLE_HOST_VERIFICATION: must be true, 1/,
  ],
  [
    'host verification that is disabled',
    { TEMPORAL_TLS_DISABLE_HOST_VERIFICATION: 'true' },
    /^TEMPORAL_TLS_DISABLE_HOST_VERIFICATION: is not supported/,
  ],
  [
    'host verification that a profile disables',
    profile('tls = { disable_host_verification = true }'),
    /^TEMPORAL_TLS_DISABLE_HOST_VERIFICATION: is not supported/,
  ],
  [
    'a codec server',
    { TEMPORAL_CODEC_ENDPOINT: 'https://codec' },
    /^TEMPORAL_CODEC_ENDPOINT: .*FOLLOW_UP_PLUGINS/,
  ],
  [
    'a codec server of a profile',
    profile('codec = { endpoint = "https://codec" }'),
    /^TEMPORAL_CODEC_ENDPOINT: /,
  ],
  [
    'a former name',
    { TEMPORAL_TLS_CERT: CERT_FILE },
    /^TEMPORAL_TLS_CERT: .*set TEMPORAL_TLS_CLIENT_CERT_PATH/,
  ],
  [
    'a name with a mistake',
    { TEMPORAL_TLS_CLIENT_CERT: CERT_FILE },
    /^TEMPORAL_TLS_CLIENT_CERT: is not a variable/,
  ],
  ['an authority', { TEMPORAL_CLIENT_AUTHORITY: 'a' }, /^TEMPORAL_CLIENT_AUTHORITY: is not supported/],
  ['an environment of the CLI', { TEMPORAL_ENV: 'prod' }, /^TEMPORAL_ENV: .*temporal\.toml/],
  [
    'a header with a line break',
    { TEMPORAL_GRPC_META_AUTHORIZATION: `${SECRET}\n${SECRET}` },
    /^TEMPORAL_GRPC_META_AUTHORIZATION: .*line break/,
  ],
  ['a binary header', { TEMPORAL_GRPC_META_TRACE_BIN: SECRET }, /^TEMPORAL_GRPC_META_TRACE_BIN: is a binary/],
  ['a header without a name', { TEMPORAL_GRPC_META_: SECRET }, /^TEMPORAL_GRPC_META_: has no valid name/],
  [
    'a header of a profile that is a number',
    profile('grpc_meta = { x = 7 }'),
    /^temporal\.toml: grpc_meta\.x is blank/,
  ],
  [
    'an API key and an authorization header',
    { TEMPORAL_API_KEY: SECRET, TEMPORAL_GRPC_META_AUTHORIZATION: `Bearer ${SECRET}` },
    /^TEMPORAL_API_KEY, TEMPORAL_GRPC_META_AUTHORIZATION: both are set/,
  ],
  [
    'a private key in the variable of its path',
    { TEMPORAL_TLS_CLIENT_KEY_PATH: key, TEMPORAL_TLS_CLIENT_CERT_DATA: cert },
    /^TEMPORAL_TLS_CLIENT_KEY_PATH: can't be read: E[A-Z]+; set it to the path of a readable file in PEM format$/,
  ],
  [
    'a path and data',
    both('TEMPORAL_TLS_SERVER_CA_CERT'),
    /^TEMPORAL_TLS_SERVER_CA_CERT_PATH, .*_DATA: both are set/,
  ],
  [
    'a port without quotes in a profile',
    profile('address = 7233'),
    /^temporal\.toml: address must be a text in quotes$/,
  ],
  [
    'a boolean in quotes in a profile',
    profile('tls = { disabled = "true" }'),
    /^temporal\.toml: tls\.disabled must be/,
  ],
])('rejects %s with the name of the variable, and without a value', (_, env, expected) => {
  let message = '';
  try {
    connectionOf(env);
  } catch (error) {
    const { problems } = error as ConfigurationError;
    message = problems.map(({ field, text }) => `${field}: ${text}`).join('\n');
  }
  expect(message).toMatch(expected);
  for (const secret of [SECRET, ...key.split('\n').slice(1, 3)]) expect(message).not.toContain(secret);
});

it('lists the API key, each line of the TLS key, and tokens of headers as secrets', () => {
  const { secrets } = loadTemporalConfig({
    ...NO_PROFILE,
    TEMPORAL_TLS_CLIENT_CERT_PATH: CERT_FILE,
    TEMPORAL_TLS_CLIENT_KEY_PATH: KEY_FILE,
    TEMPORAL_GRPC_META_AUTHORIZATION: `Bearer ${SECRET}`,
    TEMPORAL_GRPC_META_X_ENV: 'production',
  });
  const lines = key.trim().split('\n').slice(1, -1);
  expect(lines.length).toBeGreaterThan(0);
  expect([...secrets].sort()).toEqual([SECRET, ...lines].sort());
});

import { mkdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it, jest } from '@jest/globals';
import { defaultFailureConverter, defaultPayloadConverter } from '@temporalio/common';
import {
  checkCodec,
  type ConfigurationError,
  loadTemporalConfig,
} from '../../src/temporal/connection-config';
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
  ['a profile that has an address', profile('address = "temporal:7233"'), { address: 'temporal:7233' }],
  [
    'the address and the namespace of the variables instead of those of the profile',
    {
      ...profile('address = "temporal:7233"\napi_key = "other"'),
      TEMPORAL_ADDRESS: 'temporal:7234',
      TEMPORAL_API_KEY: SECRET,
    },
    { address: 'temporal:7234', apiKey: SECRET },
  ],
  [
    'the profile that TEMPORAL_PROFILE names',
    { ...profile('[profile.staging]\naddress = "staging:7233"'), TEMPORAL_PROFILE: 'staging' },
    { address: 'staging:7233' },
  ],
  [
    'the server name of the profile and the authority of the variables',
    { ...profile('tls = { server_name = "name" }'), TEMPORAL_TLS_SERVER_CA_CERT_DATA: cert },
    { tls: { serverNameOverride: 'name', serverRootCACertificate: Buffer.from(cert.trim()) } },
  ],
  [
    'TLS that a profile disables',
    profile(`tls = { disabled = true }\napi_key = "${SECRET}"`),
    { tls: false, apiKey: SECRET },
  ],
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

afterEach(() => {
  jest.restoreAllMocks();
});

const DEFAULT_CONNECTION = { address: 'localhost:7233', metadata: {} };

it.each<[string, Record<string, string>]>([
  ['no variable', { TEMPORAL_TLS: '' }],
  ['an empty file', { TEMPORAL_CONFIG_FILE: fileWith('empty.toml', '') }],
  ['a file without the default profile', { TEMPORAL_CONFIG_FILE: fileWith('other.toml', '[profile.other]') }],
])('connects to localhost without TLS and without an API key with %s', (_, env) => {
  expect(connectionOf(env)).toEqual(DEFAULT_CONNECTION);
});

it.each([
  ['linux', '.config', {}],
  ['linux', 'xdg', { XDG_CONFIG_HOME: join(folder, 'xdg') }],
  ['darwin', 'Library/Application Support', {}],
  ['win32', 'roaming', { APPDATA: join(folder, 'roaming') }],
] as const)(
  'on %s, reads temporal.toml in the folder %s, as the Temporal CLI does',
  (platform, parent, env) => {
    const place = join(folder, parent, 'temporalio');
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, 'temporal.toml'), `[profile.default]\naddress = "${platform}:7233"\n`);
    jest.spyOn(os, 'platform').mockReturnValue(platform);
    expect(loadTemporalConfig({ HOME: folder, ...env }).address).toBe(`${platform}:7233`);
  },
);

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
  // `TEMPORAL_TLS` overrides the field `tls.disabled` of a profile.
  [
    'the name of a field that another variable overrides',
    { TEMPORAL_TLS_DISABLED: 'true' },
    /^TEMPORAL_TLS_DISABLED: is not a variable/,
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
    'a file that is not TOML',
    { TEMPORAL_CONFIG_FILE: fileWith('broken.toml', `[profile.default]\napi_key = ${SECRET}`) },
    /^TEMPORAL_\* and temporal\.toml: Invalid TOML/,
  ],
  [
    'a file without a table of profiles',
    { TEMPORAL_CONFIG_FILE: fileWith('flat.toml', 'address = "temporal:7233"') },
    /^TEMPORAL_\* and temporal\.toml: the file has no \[profile\.NAME\] table; add one$/,
  ],
  [
    'a profile that the file does not have',
    { ...profile(''), TEMPORAL_PROFILE: 'staging' },
    /^TEMPORAL_\* and temporal\.toml: the file has no table \[profile\.staging\]; correct TEMPORAL_PROFILE$/,
  ],
  ['a file that is a folder', { TEMPORAL_CONFIG_FILE: folder }, /^TEMPORAL_\* and temporal\.toml: EISDIR/],
  [
    'a profile whose tls is not a table',
    profile('tls = true'),
    /^temporal\.toml: tls must be a table, such as/,
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

it('if a codec server is set, a plugin must encode payloads', () => {
  const config = loadTemporalConfig({
    ...NO_PROFILE,
    TEMPORAL_CODEC_ENDPOINT: 'https://codec',
    FOLLOW_UP_PLUGINS: './tracing.js',
  });
  const converter = { payloadConverter: defaultPayloadConverter, failureConverter: defaultFailureConverter };
  const codec = { encode: () => Promise.resolve([]), decode: () => Promise.resolve([]) };
  expect(() => {
    checkCodec(config, { ...converter, payloadCodecs: [] });
  }).toThrow('TEMPORAL_CODEC_ENDPOINT: is set, but no plugin of FOLLOW_UP_PLUGINS encodes payloads');
  expect(() => {
    checkCodec(config, { ...converter, payloadCodecs: [codec] });
    checkCodec(loadTemporalConfig(NO_PROFILE), { ...converter, payloadCodecs: [] });
  }).not.toThrow();
});

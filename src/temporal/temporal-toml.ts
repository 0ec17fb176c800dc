import { readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parse } from 'smol-toml';
import { isRecord, type JsonObject } from '../contract/checks';

/**
 * The fields of a profile that this project reads, and the type of each field. Other fields are ignored, as the Temporal CLI does. The
 * variable that overrides a field has the same name, for example `TEMPORAL_TLS_SERVER_NAME` for `tls.server_name`. Only `TEMPORAL_TLS`
 * differs: it overrides `tls.disabled` with the opposite value.
 *
 * This project can't obey three of the fields. `temporal-profile.ts` rejects `tls.disable_host_verification` if it is true, and
 * `connection-config.ts` rejects `codec.endpoint` if no plugin is set. The value of `codec.auth` is read only to hide it in error messages.
 */
export const PROFILE_FIELDS = { address: 'string', namespace: 'string', api_key: 'string' } as const;
export const CODEC_FIELDS = { endpoint: 'string', auth: 'string' } as const;
export const TLS_FIELDS = {
  disabled: 'boolean',
  client_cert_path: 'string',
  client_cert_data: 'string',
  client_key_path: 'string',
  client_key_data: 'string',
  server_ca_cert_path: 'string',
  server_ca_cert_data: 'string',
  server_name: 'string',
  disable_host_verification: 'boolean',
} as const;

export type FieldTypes = Readonly<Record<string, 'string' | 'boolean'>>;
type Values = Readonly<Partial<Record<string, string>>>;

/**
 * Returns the selected profile of `temporal.toml`. The variables replace the fields that they set. The fields are in the form of the
 * file. The variables of headers are not included.
 *
 * The SDK's package `@temporalio/envconfig` is not used, because its meaning of `TEMPORAL_TLS` depends on its version: in 1.20,
 * `TEMPORAL_TLS=true` disables TLS. In addition, its public functions drop the fields `codec` and `tls.disable_host_verification`.
 *
 * @throws Error if the file can't be read, is not valid TOML, or lacks the profile that `TEMPORAL_PROFILE` names
 */
export function loadProfile(values: Values): JsonObject {
  const profile = readFile(values);
  const { TEMPORAL_TLS: tls } = values;
  return {
    ...profile,
    ...readOverrides(values, PROFILE_FIELDS, 'TEMPORAL'),
    ...overrideTable('tls', profile.tls, {
      ...readOverrides(values, TLS_FIELDS, 'TEMPORAL_TLS'),
      ...(tls !== undefined && { disabled: tls !== 'true' }),
    }),
    ...overrideTable('codec', profile.codec, readOverrides(values, CODEC_FIELDS, 'TEMPORAL_CODEC')),
  };
}

/** Returns the name of the variable that overrides a field. */
export function variableName(prefix: string, field: string): string {
  return `${prefix}_${field.toUpperCase()}`;
}

function readOverrides(values: Values, fields: FieldTypes, prefix: string): JsonObject {
  const overrides: Record<string, unknown> = {};
  for (const [field, type] of Object.entries(fields)) {
    const value = values[variableName(prefix, field)];
    if (value !== undefined) overrides[field] = type === 'string' ? value : value === 'true';
  }
  return overrides;
}

function overrideTable(name: string, table: unknown, overrides: JsonObject): JsonObject {
  if (Object.keys(overrides).length === 0) return {};
  return { [name]: { ...(isRecord(table) ? table : {}), ...overrides } };
}

function readFile(values: Values): JsonObject {
  const { TEMPORAL_PROFILE: name, TEMPORAL_CONFIG_FILE: file = defaultFile(values) } = values;
  const config = file === undefined ? {} : parse(readIfPresent(file));
  const { profile: profiles } = config;
  if (!isRecord(profiles) && Object.keys(config).length > 0)
    throw new Error('the file has no [profile.NAME] table; add one');
  const profile = isRecord(profiles) ? profiles[name ?? 'default'] : undefined;
  if (isRecord(profile)) return profile;
  if (name !== undefined)
    throw new Error(`the file has no table [profile.${name}]; correct TEMPORAL_PROFILE`);
  return {};
}

function readIfPresent(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (isRecord(error) && error.code === 'ENOENT') return '';
    throw error;
  }
}

/** Returns the path of the file that the Temporal CLI reads by default. */
function defaultFile({ APPDATA, HOME, XDG_CONFIG_HOME }: Values): string | undefined {
  const inHome = (...names: string[]) => HOME && path.join(HOME, ...names);
  const folders: Partial<Record<NodeJS.Platform, string | undefined>> = {
    win32: APPDATA,
    darwin: inHome('Library', 'Application Support'),
  };
  const platform = os.platform();
  const folder = platform in folders ? folders[platform] : (XDG_CONFIG_HOME ?? inHome('.config'));
  return folder && path.isAbsolute(folder) ? path.join(folder, 'temporalio', 'temporal.toml') : undefined;
}

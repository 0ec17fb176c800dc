import type { Problem } from '../contract/checks';
import { CODEC_FIELDS, type FieldTypes, PROFILE_FIELDS, TLS_FIELDS, variableName } from './temporal-toml';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The variables of the Temporal CLI that this project reads and checks, with the type of their value. */
const KNOWN: Readonly<Record<string, 'string' | 'boolean' | undefined>> = {
  ...{ TEMPORAL_CONFIG_FILE: 'string', TEMPORAL_PROFILE: 'string', TEMPORAL_TLS: 'boolean' },
  ...variableTypes('TEMPORAL', PROFILE_FIELDS),
  ...variableTypes('TEMPORAL_TLS', TLS_FIELDS),
  ...variableTypes('TEMPORAL_CODEC', CODEC_FIELDS),
  // The Temporal CLI has the variable `TEMPORAL_TLS` instead.
  TEMPORAL_TLS_DISABLED: undefined,
};

function variableTypes(prefix: string, fields: FieldTypes): FieldTypes {
  const entries = Object.entries(fields).map(([field, type]) => [variableName(prefix, field), type] as const);
  return Object.fromEntries(entries);
}

const USE_A_PROFILE =
  'only the Temporal CLI reads the environments of "temporal env"; write the settings into a profile of temporal.toml, set ' +
  'TEMPORAL_PROFILE to its name, and unset this variable';
const useInstead = (name: string) => `is the former name of a variable; set ${name} instead`;

/** The variables of the Temporal CLI that this project always rejects, with the required action. */
const UNSUPPORTED: Readonly<Record<string, string | undefined>> = {
  TEMPORAL_CLIENT_AUTHORITY:
    'is not supported, because a worker of the TypeScript SDK has no such option; unset it',
  TEMPORAL_ENV: USE_A_PROFILE,
  TEMPORAL_ENV_FILE: USE_A_PROFILE,
  TEMPORAL_TLS_CERT: useInstead('TEMPORAL_TLS_CLIENT_CERT_PATH'),
  TEMPORAL_TLS_CERT_DATA: useInstead('TEMPORAL_TLS_CLIENT_CERT_DATA'),
  TEMPORAL_TLS_KEY: useInstead('TEMPORAL_TLS_CLIENT_KEY_PATH'),
  TEMPORAL_TLS_KEY_DATA: useInstead('TEMPORAL_TLS_CLIENT_KEY_DATA'),
  TEMPORAL_TLS_CA: useInstead('TEMPORAL_TLS_SERVER_CA_CERT_PATH'),
  TEMPORAL_TLS_CA_DATA: useInstead('TEMPORAL_TLS_SERVER_CA_CERT_DATA'),
};

/** A mistake in such a name could disable encryption. Other names can belong to other programs. */
const STRICT_PREFIX = /^TEMPORAL_(TLS|CODEC)_/;
/** Kubernetes sets variables with these endings for a service, for example TEMPORAL_TLS_PORT for a service `temporal-tls`. */
export const SERVICE_LINK = /_(SERVICE_HOST|SERVICE_PORT|PORT)(_|$)/;

const HEADER_PREFIX = 'TEMPORAL_GRPC_META_';

const [YES, NO] = [/^(1|true)$/i, /^(0|false)$/i];

/** The `TEMPORAL_*` variables without surrounding white space, and the problems of their names and values. */
export interface TemporalVariables {
  /** The variables without gRPC headers. A boolean is `true` or `false`. */
  readonly values: Record<string, string>;
  /** The gRPC headers by name. An empty value removes the header of the profile. */
  readonly headers: Record<string, string>;
  readonly problems: Problem[];
}

/**
 * Reads the variables as the Temporal CLI does: `TEMPORAL_TLS=TRUE` enables TLS, and the variable `TEMPORAL_GRPC_META_X_API_KEY`
 * sets the header `x-api-key`.
 *
 * An empty variable counts as not set, because Docker Compose passes unset variables as empty. The variables of headers are an
 * exception (see `headers`). White space around a value is removed, because a file that a secret was made from often ends with a line
 * break. No problem shows a value.
 */
export function readTemporalVariables(env: Environment): TemporalVariables {
  const values: Record<string, string> = {};
  const headers: Record<string, string> = {};
  const problems: Problem[] = [];
  for (const [name, text] of Object.entries(env)) {
    if (text === undefined) continue;
    const value = name.startsWith('TEMPORAL_') ? text.trim() : text;
    const problem = value === '' && text === '' ? undefined : variableProblem(name, value);
    if (problem !== undefined) problems.push({ field: name, text: problem });
    else if (name.startsWith(HEADER_PREFIX)) headers[headerName(name.slice(HEADER_PREFIX.length))] = value;
    else if (value !== '') values[name] = KNOWN[name] === 'boolean' ? String(YES.test(value)) : value;
  }
  return { values, headers, problems };
}

function variableProblem(name: string, value: string): string | undefined {
  const type = KNOWN[name];
  if (name.startsWith(HEADER_PREFIX))
    return headerProblem(headerName(name.slice(HEADER_PREFIX.length)), value);
  if (UNSUPPORTED[name] !== undefined) return UNSUPPORTED[name];
  if (type === undefined)
    return STRICT_PREFIX.test(name) && !SERVICE_LINK.test(name)
      ? 'is not a variable of the Temporal CLI; correct its name (docs/configuration.md), or unset it'
      : undefined;
  if (value === '') return 'is blank; set a value, or unset the variable';
  if (name === 'TEMPORAL_API_KEY') return apiKeyProblem(value);
  if (type === 'boolean' && !YES.test(value) && !NO.test(value)) return 'must be true, 1, false or 0';
  return undefined;
}

/** Returns the name of a gRPC header. In variables and profiles, a name can have capital letters and underscores. */
export function headerName(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}

/** Returns why gRPC can't send a header. Without this check, gRPC's error would show the value. */
export function headerProblem(name: string, value: string): string | undefined {
  if (!/^[0-9a-z.-]+$/.test(name))
    return 'has no valid name of a gRPC header at its end; use letters, digits and underscores';
  if (name.endsWith('-bin')) return 'is a binary gRPC header, which is not supported; unset it';
  if (!/^[\x20-\x7e]+$/.test(value))
    return 'is blank, or has a character that a gRPC header must not have, such as a line break; set one line of printable ASCII';
  return undefined;
}

/** Returns why a text can't be an API key. Without this check, gRPC's error would show the key, and a worker would connect without it. */
export function apiKeyProblem(text: string): string | undefined {
  if (/^[\x21-\x7e]+$/.test(text)) return undefined;
  return 'has white space or a character that is not printable ASCII; set it to the API key only';
}

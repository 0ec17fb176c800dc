import { isIPv4 } from 'node:net';
import { z } from 'zod';
import { DEFAULT_TASK_QUEUES } from '../core/names';
import type { Problem } from '../core/checks';
import { formatDuration, parseDuration } from '../core/units';
import { ConfigurationError, type Environment, variable } from '../temporal/config';

/** Where a server of the process listens. A taken port, as by a second worker, is an error only if the address was set. */
export type Listener = { readonly address: ListenAddress; readonly chosen: boolean } | 'off';

export interface ListenAddress {
  /** A name or an IP address, without the brackets of IPv6. */
  readonly host: string;
  readonly port: number;
}

/** Below a second every slow answer would be an unknown delivery; above ten minutes a dead connection is kept too long. */
const MIN_TIMEOUT_MS = 1_000;
const MAX_TIMEOUT_MS = 600_000;

/** More than one process can use. */
const MAX_IN_PROCESS_POLLS = 50_000;
const POLLS = `must be a whole number from 0 to ${MAX_IN_PROCESS_POLLS}`;

/** Half of what Temporal's limit leaves for the id of a version's own workflow (server 1.32: 1,000 - 39). */
const MAX_VERSION_CHARACTERS = 480;

const versionPart = z
  .string()
  .max(MAX_VERSION_CHARACTERS, `is longer than ${MAX_VERSION_CHARACTERS} characters`)
  .refine((text) => !text.startsWith('__'), 'begins with __, which Temporal reserves');

const QUEUES = {
  FOLLOW_UP_TASK_QUEUE: DEFAULT_TASK_QUEUES.followUp,
  AGENT_API_TASK_QUEUE: DEFAULT_TASK_QUEUES.agentApi,
  AGENT_API_SEND_TASK_QUEUE: DEFAULT_TASK_QUEUES.agentApiSend,
};

const listener = (preset: string) =>
  z
    .string()
    .optional()
    .transform((text, context): Listener => {
      const address = parseListenAddress(text ?? preset);
      if (address === 'off') return 'off';
      if (address === undefined) {
        return refuse(context, 'is not host:port; give host:port (127.0.0.1:9465, [::1]:9465) or off');
      }
      return { address, chosen: text !== undefined };
    });

/** The values of LOG_LEVEL, from the most to the fewest lines. */
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error'] as const;
export type LogLevelName = (typeof LOG_LEVELS)[number];

const GIVE_BASE_URL = 'give the base URL of the agent service, such as https://agents.example.com';

const GIVE_NOTIFY_URL = 'give the URL of the receiver, such as https://hooks.example.com/follow-ups';

/** Each variable by itself, text in, checked value out. */
const variables = z.object({
  // No problem shows the value: it may be a key that was put into the wrong variable.
  AGENT_API_BASE_URL: z
    .string(`is not set; ${GIVE_BASE_URL}`)
    .refine((text) => URL.canParse(text), { error: `is not a URL; ${GIVE_BASE_URL}`, abort: true })
    .transform((text) => new URL(text))
    .refine(({ protocol }) => /^https?:$/.test(protocol), {
      error: 'has a scheme that is not HTTP; the URL must begin with https:// or http://',
    })
    .refine(({ username, password }) => username === '' && password === '', {
      error: 'holds a user name or password; the key is given by AGENT_API_KEY or AGENT_API_KEY_FILE alone',
    })
    // The URL class reports a lone ? or # as empty.
    .refine(({ href }) => !/[?#]/.test(href), {
      error: 'has a query (?…) or a fragment (#…); paths are appended to the URL, so leave it out',
    }),
  AGENT_API_KEY: z.string().optional(),
  AGENT_API_KEY_FILE: z.string().optional(),
  AGENT_API_TIMEOUT: z
    .string()
    .default('30s')
    .transform((text, context): number => {
      const parsed = parseDuration(text);
      if ('problem' in parsed) return refuse(context, parsed.problem);
      if (parsed.ms >= MIN_TIMEOUT_MS && parsed.ms <= MAX_TIMEOUT_MS) return parsed.ms;
      return refuse(context, `must be between 1s and 10m; it is ${formatDuration(parsed.ms)}`);
    }),
  FOLLOW_UP_TASK_QUEUE: z.string().default(QUEUES.FOLLOW_UP_TASK_QUEUE),
  AGENT_API_TASK_QUEUE: z.string().default(QUEUES.AGENT_API_TASK_QUEUE),
  AGENT_API_SEND_TASK_QUEUE: z.string().default(QUEUES.AGENT_API_SEND_TASK_QUEUE),
  AGENT_API_IN_PROCESS_POLLS: z.coerce
    .number(POLLS)
    .refine((count) => Number.isInteger(count) && count >= 0 && count <= MAX_IN_PROCESS_POLLS, POLLS)
    .optional(),
  FOLLOW_UP_DATA_CONVERTER: z.string().optional(),
  FOLLOW_UP_NOTIFY_URL: z
    .string()
    .refine((text) => URL.canParse(text), { error: `is not a URL; ${GIVE_NOTIFY_URL}`, abort: true })
    .transform((text) => new URL(text))
    .refine(({ protocol }) => /^https?:$/.test(protocol), `has a scheme that is not HTTP; ${GIVE_NOTIFY_URL}`)
    .refine(
      ({ username, password }) => username + password === '',
      'holds a user name or password; leave them out',
    )
    .optional(),
  FOLLOW_UP_NOTIFY_SECRET_FILE: z.string().optional(),
  TEMPORAL_DEPLOYMENT_NAME: versionPart
    .refine((text) => !/[.:]/.test(text), 'has a dot or a colon, which Temporal refuses there')
    .optional(),
  TEMPORAL_WORKER_BUILD_ID: versionPart.optional(),
  // Temporal's samples serve SDK metrics at 9464; the health checks get the next port.
  FOLLOW_UP_HEALTH_ADDRESS: listener('127.0.0.1:9465'),
  FOLLOW_UP_METRICS_ADDRESS: listener('127.0.0.1:9464').refine(
    (metrics) => metrics === 'off' || metrics.address.port > 0,
    'has port 0; the exporter could not say which port it got, so give one',
  ),
  LOG_LEVEL: z
    .string()
    .toLowerCase()
    .pipe(z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`))
    .default('info'),
});
type VariableName = keyof typeof variables.shape;

/** The variables of the worker besides Temporal's own; docs/configuration.md has their meaning and defaults. */
export const VARIABLES = Object.keys(variables.shape) as VariableName[];

/** The texts of the variables that are set. */
export type SetVariables = Partial<Record<VariableName, string>>;

export function setVariables(env: Environment): SetVariables {
  const set = VARIABLES.map((name) => [name, variable(env, name)] as const);
  return Object.fromEntries(set.filter(([, value]) => value !== undefined));
}

/** @throws ConfigurationError */
export function checkVariables(set: SetVariables): z.output<typeof variables> {
  const parsed = variables.safeParse(set);
  const issues = parsed.error?.issues ?? [];
  const problems = issues.map(({ path, message }) => ({ field: path.join('.'), text: message }));
  const together = [...sameQueues(set), ...incompleteVersion(set), ...incompleteNotify(set)];
  if (parsed.success && together.length === 0) return parsed.data;
  throw new ConfigurationError([...problems, ...together]);
}

/** Workers of one queue must offer the same activities, or some can't do a task. */
function sameQueues(set: SetVariables): Problem[] {
  const names = Object.keys(QUEUES) as (keyof typeof QUEUES)[];
  const queue = (name: keyof typeof QUEUES) => set[name] ?? QUEUES[name];
  return names.flatMap((field, index) => {
    const other = names.slice(0, index).find((name) => queue(name) === queue(field));
    if (other === undefined) return [];
    return [{ field, text: `is ${JSON.stringify(queue(field))} as ${other} is; they must differ` }];
  });
}

/** Only both together name a version of the worker. */
function incompleteVersion(set: SetVariables): Problem[] {
  const names = ['TEMPORAL_DEPLOYMENT_NAME', 'TEMPORAL_WORKER_BUILD_ID'] as const;
  const [field, ...others] = names.filter((name) => set[name] === undefined);
  if (field === undefined || others.length > 0) return [];
  const given = names.find((name) => name !== field);
  return [{ field, text: `is not set, but ${given} is; set both, or neither to run without a version` }];
}

function incompleteNotify(set: SetVariables): Problem[] {
  const names = ['FOLLOW_UP_NOTIFY_URL', 'FOLLOW_UP_NOTIFY_SECRET_FILE'] as const;
  const [field, ...others] = names.filter((name) => set[name] === undefined);
  if (field === undefined || others.length > 0) return [];
  return [
    { field, text: 'is not set, but the other one of the two is; set both, or neither to tell nobody' },
  ];
}

/** Reports a problem of one variable; the returned value does not matter, because parsing fails. */
function refuse(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}

/** RFC 6761 keeps `localhost` and names below it on this machine; so are 127.0.0.0/8 and ::1. */
export function isLoopback({ hostname }: URL): boolean {
  if (isIPv4(hostname)) return hostname.startsWith('127.');
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]';
}

/** The address in `text`, `off`, or undefined. Port 0 lets the system choose. */
function parseListenAddress(text: string): ListenAddress | 'off' | undefined {
  if (text.toLowerCase() === 'off') return 'off';
  const [, ipv6, host = ipv6, port] = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+)):(\d+)$/i.exec(text) ?? [];
  return host === undefined || Number(port) > 65_535 ? undefined : { host, port: Number(port) };
}

/** The usual form: `127.0.0.1:9465`, `[::1]:9465`. */
export function formatListenAddress({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

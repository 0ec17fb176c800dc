import { isIPv4 } from 'node:net';
import { z } from 'zod';
import { DEFAULT_TASK_QUEUES } from '../core/names';
import { formatDuration, parseDuration } from '../core/units';

/** Where a server of the process listens. A taken port is an error only if the address was set. */
export type Listener = { readonly address: ListenAddress; readonly chosen: boolean } | 'off';

/** Temporal's samples serve SDK metrics at 9464; the health checks get the next port. */
const DEFAULT_HEALTH_ADDRESS = '127.0.0.1:9465';
const DEFAULT_METRICS_ADDRESS = '127.0.0.1:9464';

/** Below a second every slow answer would be an unknown delivery; above ten minutes a dead connection is kept too long. */
const MIN_TIMEOUT_MS = 1_000;
const MAX_TIMEOUT_MS = 600_000;

/** More than one process can use. */
const MAX_IN_PROCESS_POLLS = 50_000;

/** Temporal refuses longer names (`limit.maxIDLength`). */
const MAX_TASK_QUEUE_CHARACTERS = 1_000;

const taskQueue = (name: string) =>
  z
    .string()
    .max(MAX_TASK_QUEUE_CHARACTERS, `is longer than ${MAX_TASK_QUEUE_CHARACTERS} characters`)
    .refine((text) => !text.startsWith('/_sys/'), 'begins with /_sys/, which Temporal reserves')
    .default(name);

const listener = (preset: string) =>
  z
    .string()
    .optional()
    .transform((text, context): Listener => {
      const address = parseListenAddress(text ?? preset);
      if (address === 'off') return 'off';
      if ('problem' in address) return refuse(context, address.problem);
      return { address, chosen: text !== undefined };
    });

/** Each variable by itself, text in, checked value out. */
export const variables = z.object({
  AGENT_API_BASE_URL: z
    .string('is not set; give the base URL of the agent service, such as https://agents.example.com')
    .transform((text, context) => {
      const parsed = parseBaseUrl(text);
      return 'problem' in parsed ? refuse(context, parsed.problem) : parsed;
    }),
  AGENT_API_TIMEOUT: z
    .string()
    .default('30s')
    .transform((text, context): number => {
      const parsed = parseDuration(text);
      if ('problem' in parsed) return refuse(context, parsed.problem);
      if (parsed.ms >= MIN_TIMEOUT_MS && parsed.ms <= MAX_TIMEOUT_MS) return parsed.ms;
      return refuse(context, `must be between 1s and 10m; it is ${formatDuration(parsed.ms)}`);
    }),
  AGENT_API_IN_PROCESS_POLLS: z
    .string()
    .optional()
    .transform((text, context): number | undefined => {
      if (text === undefined) return undefined;
      const polls = /^\d{1,5}$/.test(text) ? Number(text) : NaN;
      if (polls <= MAX_IN_PROCESS_POLLS) return polls;
      return refuse(context, `must be a whole number from 0 to ${MAX_IN_PROCESS_POLLS}`);
    }),
  FOLLOW_UP_TASK_QUEUE: taskQueue(DEFAULT_TASK_QUEUES.followUp),
  AGENT_API_TASK_QUEUE: taskQueue(DEFAULT_TASK_QUEUES.agentApi),
  AGENT_API_SEND_TASK_QUEUE: taskQueue(DEFAULT_TASK_QUEUES.agentApiSend),
  FOLLOW_UP_HEALTH_ADDRESS: listener(DEFAULT_HEALTH_ADDRESS),
  FOLLOW_UP_METRICS_ADDRESS: listener(DEFAULT_METRICS_ADDRESS).refine(
    (metrics) => metrics === 'off' || metrics.address.port > 0,
    'has port 0; the exporter could not say which port it got, so give one',
  ),
  LOG_LEVEL: z
    .string()
    .default('info')
    .transform((text, context): LogLevelName => {
      const level = LOG_LEVELS.find((name) => name === text.toLowerCase());
      return level ?? refuse(context, `must be one of ${LOG_LEVELS.join(', ')}`);
    }),
} satisfies Partial<Record<VariableName, z.ZodType>>);

/** Values that must differ and don't. Workers of one queue must offer the same activities, or some can't do a task. */
export function collisions(set: Partial<Record<VariableName, string>>): string[] {
  const queues: [VariableName, string][] = [
    ['FOLLOW_UP_TASK_QUEUE', set.FOLLOW_UP_TASK_QUEUE ?? DEFAULT_TASK_QUEUES.followUp],
    ['AGENT_API_TASK_QUEUE', set.AGENT_API_TASK_QUEUE ?? DEFAULT_TASK_QUEUES.agentApi],
    ['AGENT_API_SEND_TASK_QUEUE', set.AGENT_API_SEND_TASK_QUEUE ?? DEFAULT_TASK_QUEUES.agentApiSend],
  ];
  const problems = queues.flatMap(([name, queue], index) => {
    const other = queues.slice(0, index).find(([, earlier]) => earlier === queue);
    return other === undefined
      ? []
      : [`${name}: is ${JSON.stringify(queue)} as ${other[0]} is; the three task queues must differ`];
  });
  const health = set.FOLLOW_UP_HEALTH_ADDRESS ?? DEFAULT_HEALTH_ADDRESS;
  if (
    health === (set.FOLLOW_UP_METRICS_ADDRESS ?? DEFAULT_METRICS_ADDRESS) &&
    health.toLowerCase() !== 'off'
  ) {
    problems.push(
      `FOLLOW_UP_METRICS_ADDRESS: is ${health} as FOLLOW_UP_HEALTH_ADDRESS is; the two servers need different ports`,
    );
  }
  return problems;
}

/** Reports a problem of one variable; the returned value does not matter, because parsing fails. */
function refuse(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}

/**
 * Checks `{base_url}` of the agent service. A path prefix and a trailing slash are fine.
 *
 * No problem shows the value itself: a key that was put into the wrong variable would be printed.
 *
 * @returns the URL and whether the key would travel unencrypted to another machine, or the problem.
 */
function parseBaseUrl(text: string): { url: string; inClear: boolean } | { problem: string } {
  if (!URL.canParse(text)) {
    return {
      problem: 'is not a URL; give the base URL of the agent service, such as https://agents.example.com',
    };
  }
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    return { problem: 'has a scheme that is not HTTP; the URL must begin with https:// or http://' };
  }
  if (url.username !== '' || url.password !== '') {
    return {
      problem: 'holds a user name or password; the key is given by AGENT_API_KEY or AGENT_API_KEY_FILE alone',
    };
  }
  // The text is checked, because the URL class reports a lone `?` or `#` as empty.
  if (text.includes('?'))
    return { problem: 'has a query (?…); the paths of the service are appended to it, so leave it out' };
  if (text.includes('#')) return { problem: 'has a fragment (#…), which is never sent; leave it out' };
  return { url: url.href, inClear: url.protocol === 'http:' && !isLoopback(url.hostname) };
}

/** RFC 6761 keeps `localhost` and names below it on this machine; so are 127.0.0.0/8 and ::1. */
function isLoopback(hostname: string): boolean {
  if (isIPv4(hostname)) return hostname.startsWith('127.');
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]';
}

/** Where a server of this process listens. */
export interface ListenAddress {
  /** A name or an IP address, without the brackets of IPv6. */
  readonly host: string;
  readonly port: number;
}

const FORM = 'give host:port (127.0.0.1:9465, [::1]:9465) or off';

/** The address in `text`, `off`, or why it is neither. Port 0 lets the system choose. */
function parseListenAddress(text: string): ListenAddress | 'off' | { problem: string } {
  if (text.toLowerCase() === 'off') return 'off';
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+)):(\d+)$/i.exec(text);
  if (match === null) {
    if (/^\d+$/.test(text)) return { problem: `is a port without a host; ${FORM}` };
    if (/^[a-z0-9.-]+$/i.test(text)) return { problem: `has no port; ${FORM}` };
    if (/^[0-9a-f]*:[0-9a-f:]*$/i.test(text))
      return { problem: `is an IPv6 address without brackets; ${FORM}` };
    return { problem: `is not an address; ${FORM}` };
  }
  const port = Number(match[3]);
  if (port > 65_535) return { problem: `has a port above 65535; ${FORM}` };
  return { host: match[1] ?? match[2] ?? '', port };
}

/** The usual form: `127.0.0.1:9465`, `[::1]:9465`. */
export function formatListenAddress({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The variables of the worker besides Temporal's own; docs/configuration.md has their meaning and defaults. */
export const VARIABLES = [
  'AGENT_API_BASE_URL',
  'AGENT_API_KEY',
  'AGENT_API_KEY_FILE',
  'AGENT_API_TIMEOUT',
  'FOLLOW_UP_TASK_QUEUE',
  'AGENT_API_TASK_QUEUE',
  'AGENT_API_SEND_TASK_QUEUE',
  'AGENT_API_IN_PROCESS_POLLS',
  'FOLLOW_UP_DATA_CONVERTER',
  'FOLLOW_UP_HEALTH_ADDRESS',
  'FOLLOW_UP_METRICS_ADDRESS',
  'LOG_LEVEL',
] as const;
export type VariableName = (typeof VARIABLES)[number];

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The worker's variables that are set. An empty one counts as not set: that is how Docker Compose and many shells pass on
 * a variable that is not set outside.
 */
export function setVariables(env: Environment): Partial<Record<VariableName, string>> {
  const set: Partial<Record<VariableName, string>> = {};
  for (const name of VARIABLES) {
    const value = env[name]?.trim();
    if (value !== undefined && value !== '') set[name] = value;
  }
  return set;
}

/** The values of LOG_LEVEL, from the most to the fewest lines. */
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error'] as const;
export type LogLevelName = (typeof LOG_LEVELS)[number];

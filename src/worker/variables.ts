import { isIP } from 'node:net';
import { z } from 'zod';
import type { Problem } from '../contract/checks';
import { DEFAULT_TASK_QUEUES } from '../contract/names';
import { formatDuration, parseDuration } from '../contract/duration';
import { ConfigurationError, type Environment, readVariable } from '../temporal/connection-config';

export interface ListenAddress {
  /** A name or an IP address, without the brackets of IPv6. */
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** False for a default, whose port a second worker finds taken. */
  readonly chosen: boolean;
}

/** Where a server of the process listens. */
export type Listener = ListenAddress | 'off';

/** Below a second every slow answer would be an unknown delivery; above ten minutes a dead connection is kept too long. */
const MIN_TIMEOUT_MS = 1_000;
const MAX_TIMEOUT_MS = 600_000;

const DEFAULT_QUEUES = {
  FOLLOW_UP_TASK_QUEUE: DEFAULT_TASK_QUEUES.followUp,
  AGENT_API_READ_TASK_QUEUE: DEFAULT_TASK_QUEUES.agentApiRead,
  AGENT_API_SEND_TASK_QUEUE: DEFAULT_TASK_QUEUES.agentApiSend,
};

/** No problem shows the value: it may be a key that was put into the wrong variable. */
const httpUrlSchema = (form: RegExp, without: string, give: string) => {
  const error = `is not an http:// or https:// URL without ${without}; ${give}`;
  return z
    .string(`is not set; ${give}`)
    .refine((text) => form.test(text) && URL.canParse(text), { error, abort: true })
    .transform((text) => new URL(text));
};

const listenAddressSchema = (defaultAddress: string) =>
  z
    .string()
    .optional()
    .transform((text, context): Listener => {
      if (text?.toLowerCase() === 'off') return 'off';
      const form = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+)):(\d+)$/i;
      const [, ipv6, host = ipv6, port] = form.exec(text ?? defaultAddress) ?? [];
      if (host !== undefined && Number(port) <= 65_535)
        return { host, port: Number(port), chosen: text !== undefined };
      return addProblem(context, 'is not host:port; give host:port (127.0.0.1:9465, [::1]:9465) or off');
    });

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error'] as const;
export type LogLevelName = (typeof LOG_LEVELS)[number];

const variables = z.object({
  AGENT_API_BASE_URL: httpUrlSchema(
    /^https?:\/\/[^/?#@]+(?:\/[^?#]*)?$/i,
    'user name, password, query and fragment',
    'give the base URL of the agent service, such as https://agents.example.com',
  ),
  AGENT_API_KEY: z.string().optional(),
  AGENT_API_KEY_FILE: z.string().optional(),
  AGENT_API_TIMEOUT: z
    .string()
    .default('30s')
    .transform((text, context) => {
      const parsed = parseDuration(text);
      if ('problem' in parsed) return addProblem(context, parsed.problem);
      if (parsed.ms >= MIN_TIMEOUT_MS && parsed.ms <= MAX_TIMEOUT_MS) return parsed.ms;
      return addProblem(context, `must be between 1s and 10m; it is ${formatDuration(parsed.ms)}`);
    }),
  FOLLOW_UP_TASK_QUEUE: z.string().default(DEFAULT_QUEUES.FOLLOW_UP_TASK_QUEUE),
  AGENT_API_READ_TASK_QUEUE: z.string().default(DEFAULT_QUEUES.AGENT_API_READ_TASK_QUEUE),
  AGENT_API_SEND_TASK_QUEUE: z.string().default(DEFAULT_QUEUES.AGENT_API_SEND_TASK_QUEUE),
  FOLLOW_UP_DATA_CONVERTER: z.string().optional(),
  FOLLOW_UP_NOTIFY_URL: httpUrlSchema(
    /^https?:\/\/[^/?#@]+(?:[/?#].*)?$/i,
    'user name and password',
    'give the URL of the receiver, such as https://hooks.example.com/follow-ups',
  ).optional(),
  FOLLOW_UP_NOTIFY_SECRET_FILE: z.string().optional(),
  TEMPORAL_DEPLOYMENT_NAME: z
    .string()
    .regex(/^[^.:]*$/, 'has a dot or a colon, which Temporal refuses there')
    .optional(),
  TEMPORAL_WORKER_BUILD_ID: z.string().optional(),
  // Temporal's samples serve SDK metrics at 9464; the health checks get the next port.
  FOLLOW_UP_HEALTH_ADDRESS: listenAddressSchema('127.0.0.1:9465'),
  FOLLOW_UP_METRICS_ADDRESS: listenAddressSchema('127.0.0.1:9464').refine(
    (metrics) => metrics === 'off' || (isIP(metrics.host) > 0 && metrics.port > 0),
    'is not an IP address and a port above 0; the exporter of metrics takes no other address',
  ),
  LOG_LEVEL: z
    .string()
    .toLowerCase()
    .pipe(z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`))
    .default('info'),
});
type VariableName = keyof typeof variables.shape;

/** Those of the worker besides Temporal's own. */
export const VARIABLES = Object.keys(variables.shape) as VariableName[];

export type DefinedVariables = Partial<Record<VariableName, string>>;

export function readDefinedVariables(env: Environment): DefinedVariables {
  const set = VARIABLES.map((name) => [name, readVariable(env, name)] as const);
  return Object.fromEntries(set.filter(([, value]) => value !== undefined));
}

/** Variables of which one means nothing without the other. */
const PAIRS = [
  ['TEMPORAL_DEPLOYMENT_NAME', 'TEMPORAL_WORKER_BUILD_ID'],
  ['FOLLOW_UP_NOTIFY_URL', 'FOLLOW_UP_NOTIFY_SECRET_FILE'],
] as const;

/** @throws ConfigurationError */
export function checkVariables(set: DefinedVariables): z.output<typeof variables> {
  const parsed = variables.safeParse(set);
  const issues = parsed.error?.issues ?? [];
  const problems: Problem[] = issues.map(({ path, message }) => ({ field: path.join(), text: message }));
  for (const [one, other] of PAIRS.flatMap(([a, b]) => [[a, b] as const, [b, a] as const]))
    if (set[one] === undefined && set[other] !== undefined)
      problems.push({ field: one, text: `is not set, but ${other} is; set both or neither` });
  // Workers of one queue must offer the same activities, or some can't do a task.
  const queues = new Map<string, string>();
  for (const [field, preset] of Object.entries(DEFAULT_QUEUES)) {
    const queue = set[field as keyof typeof DEFAULT_QUEUES] ?? preset;
    const other = queues.get(queue);
    if (other !== undefined)
      problems.push({ field, text: `is ${JSON.stringify(queue)} as ${other} is; they must differ` });
    queues.set(queue, field);
  }
  if (parsed.success && problems.length === 0) return parsed.data;
  throw new ConfigurationError(problems);
}

/** @returns the words of a warning @throws ConfigurationError for an address that was chosen */
export function explainListenFailure(field: VariableName, listener: ListenAddress, error: unknown): string {
  const reason = (error as Error).message;
  const text = `${formatListenAddress(listener)} can't be used (${reason}); give another address or off`;
  if (listener.chosen) throw new ConfigurationError([{ field, text }]);
  return `${field}: ${text}`;
}

function addProblem(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}

export function formatListenAddress({ host, port }: Omit<ListenAddress, 'chosen'>): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

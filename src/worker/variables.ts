import { isIP } from 'node:net';
import { z } from 'zod';
import { MAX_TIMEOUT_MS } from '../agent-api/client';
import type { Problem } from '../contract/checks';
import { DEFAULT_TASK_QUEUES } from '../contract/names';
import { formatDuration, parseDuration } from '../contract/duration';
import { ConfigurationError, type Environment, readVariable } from '../temporal/connection-config';

export interface ListenAddress {
  /** The host name or IP address, without the brackets of IPv6. */
  readonly host: string;
  /** The port. If the port is 0, the operating system chooses a free port. */
  readonly port: number;
  /** Whether an operator set the address. A default port that is in use, for example by a second worker, is only a warning. */
  readonly isSetByOperator: boolean;
}

/** The address at which a server of this process listens. */
export type ListenSetting = ListenAddress | 'off';

/** The minimum of `AGENT_API_TIMEOUT`. With a shorter timeout, every slow response to a POST is an unknown delivery. */
const MIN_TIMEOUT_MS = 1_000;

const DEFAULT_QUEUES = {
  FOLLOW_UP_TASK_QUEUE: DEFAULT_TASK_QUEUES.followUp,
  AGENT_API_READ_TASK_QUEUE: DEFAULT_TASK_QUEUES.agentApiRead,
  AGENT_API_SEND_TASK_QUEUE: DEFAULT_TASK_QUEUES.agentApiSend,
};

/** Checks a URL. No error message shows the value, because an operator may have put a key into the wrong variable. */
const httpUrlSchema = (form: RegExp, without: string, action: string) => {
  const error = `must be an http:// or https:// URL without ${without}; ${action}`;
  return z
    .string(`is not set; ${action}`)
    .refine((text) => form.test(text) && URL.canParse(text), { error, abort: true })
    .transform((text) => new URL(text));
};

const listenAddressSchema = (defaultAddress: string) =>
  z
    .string()
    .optional()
    .transform((text, context): ListenSetting => {
      if (text?.toLowerCase() === 'off') return 'off';
      const form = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+)):(\d+)$/i;
      const [, ipv6, host = ipv6, port] = form.exec(text ?? defaultAddress) ?? [];
      if (host !== undefined && Number(port) <= 65_535)
        return { host, port: Number(port), isSetByOperator: text !== undefined };
      return addProblem(
        context,
        `is not host:port; set it to host:port (${defaultAddress}, or ${defaultAddress.replace('127.0.0.1', '[::]')} for every address ` +
          'of the machine) or to off',
      );
    });

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error'] as const;
export type LogLevelName = (typeof LOG_LEVELS)[number];

const variables = z.object({
  AGENT_API_BASE_URL: httpUrlSchema(
    /^https?:\/\/[^/?#@]+(?:\/[^?#]*)?$/i,
    'user name, password, query and fragment',
    'set it to the base URL of the agent service, such as https://agents.example.com',
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
  FOLLOW_UP_PLUGINS: z.string().optional(),
  FOLLOW_UP_NOTIFY_URL: httpUrlSchema(
    /^https?:\/\/[^/?#@]+(?:[/?#].*)?$/i,
    'user name and password',
    'set it to the URL of the receiver, such as https://hooks.example.com/follow-ups',
  ).optional(),
  FOLLOW_UP_NOTIFY_SECRET_FILE: z.string().optional(),
  TEMPORAL_DEPLOYMENT_NAME: z
    .string()
    .regex(
      /^[^.:]*$/,
      'has a dot or a colon, which the Temporal server rejects in a deployment name; remove it',
    )
    .optional(),
  TEMPORAL_WORKER_BUILD_ID: z.string().optional(),
  // Temporal's samples use port 9464 for SDK metrics. The health checks use the next port.
  FOLLOW_UP_HEALTH_ADDRESS: listenAddressSchema('127.0.0.1:9465'),
  FOLLOW_UP_METRICS_ADDRESS: listenAddressSchema('127.0.0.1:9464').refine(
    (metrics) => metrics === 'off' || (isIP(metrics.host) > 0 && metrics.port > 0),
    'is not an IP address with a port above 0; set it to an address such as 127.0.0.1:9464, or to off',
  ),
  LOG_LEVEL: z
    .string()
    .toLowerCase()
    .pipe(z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`))
    .default('info'),
});
type VariableName = keyof typeof variables.shape;

/** The names of the variables that this file checks. `loadTemporalConfig` reads the variables of the connection. */
export const VARIABLES = Object.keys(variables.shape) as VariableName[];

export type DefinedVariables = Partial<Record<VariableName, string>>;

export function readDefinedVariables(env: Environment): DefinedVariables {
  const set = VARIABLES.map((name) => [name, readVariable(env, name)] as const);
  return Object.fromEntries(set.filter(([, value]) => value !== undefined));
}

/** The pairs of variables that must be set together. */
const PAIRS = [
  ['TEMPORAL_DEPLOYMENT_NAME', 'TEMPORAL_WORKER_BUILD_ID'],
  ['FOLLOW_UP_NOTIFY_URL', 'FOLLOW_UP_NOTIFY_SECRET_FILE'],
] as const;

/** Checks and converts the variables. @throws ConfigurationError, which names every problem at once */
export function checkVariables(set: DefinedVariables): z.output<typeof variables> {
  const parsed = variables.safeParse(set);
  const issues = parsed.error?.issues ?? [];
  const problems: Problem[] = issues.map(({ path, message }) => ({ field: path.join(), text: message }));
  for (const [name, other] of PAIRS.flatMap(([a, b]) => [[a, b] as const, [b, a] as const]))
    if (set[name] === undefined && set[other] !== undefined)
      problems.push({ field: name, text: `is not set, but ${other} is set; set both or neither` });
  // All workers of one task queue must have the same activities. Otherwise, some workers get tasks that they can't run.
  const queues = new Map<string, string>();
  for (const [field, defaultQueue] of Object.entries(DEFAULT_QUEUES)) {
    const queue = set[field as keyof typeof DEFAULT_QUEUES] ?? defaultQueue;
    const other = queues.get(queue);
    if (other !== undefined)
      problems.push({
        field,
        text: `is ${JSON.stringify(queue)}, the same as ${other}; set different names`,
      });
    queues.set(queue, field);
  }
  if (parsed.success && problems.length === 0) return parsed.data;
  throw new ConfigurationError(problems);
}

/**
 * Throws if an operator set the address at which the process can't listen. Otherwise, returns the warning for the default
 * address.
 *
 * @throws ConfigurationError if an operator set the address
 */
export function throwOrExplainListenFailure(
  field: VariableName,
  listener: ListenAddress,
  error: unknown,
): string {
  const reason = (error as Error).message;
  const text = `${formatListenAddress(listener)} can't be used (${reason}); set another address or off`;
  if (listener.isSetByOperator) throw new ConfigurationError([{ field, text }]);
  return `${field}: ${text}`;
}

const NO_IPV6 = /address family not supported|address not available|cannot assign requested address/i;

/**
 * Returns the host to listen on after an error, or undefined if the error is final. `::` serves IPv6 and IPv4, but a kernel
 * without IPv6 rejects it. There, 0.0.0.0 serves the same clients.
 */
export function ipv4Fallback(host: string, error: unknown): string | undefined {
  return host === '::' && NO_IPV6.test(String(error)) ? '0.0.0.0' : undefined;
}

function addProblem(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}

export function formatListenAddress({ host, port }: Omit<ListenAddress, 'isSetByOperator'>): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

import { z } from 'zod';
import { formatDuration, parseDuration } from '../contract/duration';
import { DEFAULT_TASK_QUEUES } from '../contract/names';
import { parseBaseUrl } from './base-url';
import { type ListenAddress, parseListenAddress } from './listen-address';
import { LOG_LEVELS, type LogLevelName } from './log-level';
import type { VariableName } from './variables';

/** Where a server of the process listens; a taken port is an error only where somebody has chosen it. */
export type Listener = { readonly address: ListenAddress; readonly chosen: boolean } | 'off';

/** Beside each other and beside the Prometheus convention for SDK metrics (Temporal's samples use 9464). */
const DEFAULT_HEALTH_ADDRESS = '127.0.0.1:9465';
const DEFAULT_METRICS_ADDRESS = '127.0.0.1:9464';

/** Below a second every slow answer would be an unknown delivery; above ten minutes a dead connection is believed too long. */
const MIN_TIMEOUT_MS = 1_000;
const MAX_TIMEOUT_MS = 600_000;

/** More than one process can do anything with. */
const MAX_IN_PROCESS_POLLS = 50_000;

/** Temporal refuses longer names (`limit.maxIDLength`). */
const MAX_TASK_QUEUE_CHARACTERS = 1_000;

const taskQueue = (name: string) =>
  z
    .string()
    .max(MAX_TASK_QUEUE_CHARACTERS, `is longer than ${MAX_TASK_QUEUE_CHARACTERS} characters`)
    .refine((text) => !text.startsWith('/_sys/'), 'begins with /_sys/, which Temporal keeps for itself')
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
    'has port 0; the exporter could not tell which port it got, so give one',
  ),
  LOG_LEVEL: z
    .string()
    .default('info')
    .transform((text, context): LogLevelName => {
      const level = LOG_LEVELS.find((name) => name === text.toLowerCase());
      return level ?? refuse(context, `must be one of ${LOG_LEVELS.join(', ')}`);
    }),
} satisfies Partial<Record<VariableName, z.ZodType>>);

/** Two names for one thing. Workers of one queue must offer the same activities, or a task meets one that can't do it. */
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

/** A problem of one variable; the value returned stands for nothing, since parsing fails. */
function refuse(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}

import { nearest } from '../contract/nearest';

/** The variables of the worker besides Temporal's own; their meaning and defaults: README.md, "Run the worker". */
export const VARIABLES = [
  'AGENT_API_BASE_URL',
  'AGENT_API_KEY',
  'AGENT_API_KEY_FILE',
  'AGENT_API_TIMEOUT',
  'FOLLOW_UP_TASK_QUEUE',
  'AGENT_API_TASK_QUEUE',
  'AGENT_API_SEND_TASK_QUEUE',
  'AGENT_API_IN_PROCESS_POLLS',
  'FOLLOW_UP_HEALTH_ADDRESS',
  'FOLLOW_UP_METRICS_ADDRESS',
  'LOG_LEVEL',
] as const;
export type VariableName = (typeof VARIABLES)[number];

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The worker's variables that are set. An empty one counts as not set: that is how Docker Compose and many shells hand
 * on a variable which the outside does not have.
 */
export function setVariables(env: Environment): Partial<Record<VariableName, string>> {
  const set: Partial<Record<VariableName, string>> = {};
  for (const name of VARIABLES) {
    const value = env[name]?.trim();
    if (value !== undefined && value !== '') set[name] = value;
  }
  return set;
}

/** Kubernetes sets these in every pod beside a service that happens to be named `agent-api` or `follow-up-…`. */
const KUBERNETES_SERVICE = /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)$/;

/** Two letters' difference is a slip of the fingers; more is another word. */
const MAX_SLIPS = 2;

/**
 * One warning for each variable that looks as if it was meant for the worker, and that nobody reads: a default would
 * apply in silence. Values are not shown.
 */
export function misspeltVariables(env: Environment): string[] {
  const known: readonly string[] = VARIABLES;
  return Object.keys(env).flatMap((name) => {
    if (known.includes(name) || env[name] === undefined || KUBERNETES_SERVICE.test(name)) return [];
    const isOurs = /^(AGENT_API|FOLLOW_UP)_/.test(name);
    const meant = nearest(name, VARIABLES, isOurs ? Infinity : MAX_SLIPS);
    return meant === undefined
      ? []
      : [`${name} is no variable of the worker and has no effect; did you mean ${meant}?`];
  });
}

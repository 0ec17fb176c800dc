import type { Gates } from './activities';
import type { Step } from './workflow';

export interface StartOptions {
  readonly memo?: Readonly<Record<string, unknown>>;
  readonly phase?: string;
}

/** What the server tells of a run. */
export interface Told {
  /** Types of events, shortened; each workflow task that was completed without anything between its events is one `task`. */
  readonly history: readonly string[];
  /** Of activities that are pending: the attempt, and whether a worker has it. */
  readonly pending: readonly { readonly attempt: number; readonly isStarted: boolean }[];
  readonly isOpen: boolean;
}

/** A probe on a server, real or simulated. After a reset or a continue-as-new it is the latest run. */
export interface ProbeRun {
  readonly workflowId: string;
  readonly gates: Gates;
  tell(what: string): Promise<void>;
  /** @returns the answer, or why it was refused */
  ask(what: string): Promise<string>;
  /** Asks a question that waits for the end of the task under way. */
  askBehind(what: string): Promise<{ readonly answer: Promise<string> }>;
  seen(): Promise<readonly string[]>;
  told(): Promise<Told>;
  until(isIt: (told: Told) => boolean): Promise<Told>;
  untilReached(gate: string): Promise<void>;
  cancel(): Promise<void>;
  terminate(): Promise<void>;
  /** To the nth of its completed tasks, from 0. */
  reset(task: number): Promise<void>;
  pause(): Promise<void>;
  unpause(): Promise<void>;
  resetActivity(): Promise<void>;
  allowAttempts(attempts: number): Promise<void>;
  completeById(result: unknown): Promise<void>;
  /** Another workflow of the script. */
  of(workflowId: string): Pick<ProbeRun, 'until' | 'told' | 'cancel' | 'terminate'>;
}

export interface Stage {
  /** The id of a child. */
  readonly idOf: (child: string) => string;
  readonly start: (steps: readonly Step[], options?: StartOptions) => Promise<ProbeRun>;
}

/** A behaviour of server and core that the simulation plays. */
export interface Behaviour {
  readonly name: string;
  readonly script: (stage: Stage) => Promise<unknown>;
  /** What the script returns, on each server. */
  readonly shows: unknown;
}

/**
 * Milliseconds of the server's own clock for what must come before a time-out: a worker that is kept busy by other programs
 * takes a second. All behaviours are played at once, so the longest takes two of them.
 */
export const SLACK = 15_000;

/** Steps that wait for the script. */
export const GO: Step = { wait: 'told: go' };
export const END: Step = { wait: 'told: end' };

export function isPending(attempt: number, isStarted: boolean) {
  return ({ pending: [first] }: Told): boolean => first?.attempt === attempt && first.isStarted === isStarted;
}

export function has(type: string) {
  return ({ history }: Told): boolean => history.includes(type);
}

/** Whatever has come has been told. */
export function isIdle({ history }: Told): boolean {
  return history.at(-1) === 'task';
}

/** How it ended: its history, and all that it has seen. */
export async function endOf(run: ProbeRun) {
  const { history } = await run.until(({ isOpen }) => !isOpen);
  return { seen: await run.seen(), history: history.join(' ') };
}

const TASK = ['WorkflowTaskScheduled', 'WorkflowTaskStarted', 'WorkflowTaskCompleted'];

/** `ActivityScheduled` for `ActivityTaskScheduled`, and so on. */
const SHORT = [
  [/WorkflowExecution/, ''],
  [/^ActivityTask/, 'Activity'],
] as const;

export function compact(events: readonly { readonly type: string; readonly cause?: string }[]): string[] {
  const short: string[] = [];
  for (let index = 0; index < events.length; index += 1) {
    const isTask = TASK.every((type, nth) => events[index + nth]?.type === type);
    const { type = '', cause } = events[index] ?? {};
    const named = SHORT.reduce((name, [long, instead]) => name.replace(long, instead), type);
    short.push(isTask ? 'task' : cause === undefined ? named : `${named}:${cause}`);
    if (isTask) index += TASK.length - 1;
  }
  return short;
}

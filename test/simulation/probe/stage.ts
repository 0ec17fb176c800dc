import type { Gates } from './activities';
import type { Step } from './workflow';

/** A behaviour of server and core that the simulation plays. */
export interface Behaviour {
  readonly steps: readonly Step[];
  readonly memo?: Readonly<Record<string, unknown>>;
  readonly phase?: string;
  /** What is done meanwhile, one after the other: a verb and its word each. Then the workflow ends. */
  readonly script?: string;
  /** What the workflow has seen, on each server, and what {@link play} returns besides. */
  readonly shows: Partial<Awaited<ReturnType<typeof play>>>;
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
  readonly gates: Gates;
  seen(): Promise<readonly string[]>;
  told(): Promise<Told>;
  until(what: string, isIt: () => boolean | Promise<boolean>): Promise<void>;
  /** @returns the answer, or why it was refused */
  ask(what: string): Promise<string>;
  /** Asks a question that waits for the end of the task under way. */
  askBehind(what: string): Promise<{ readonly answer: Promise<string> }>;
  /** What the server is asked to do, by its verb. `reset`: to the nth of its completed tasks, from 0. */
  readonly does: Readonly<Record<string, (word: string) => Promise<unknown>>>;
}

/**
 * Milliseconds of the server's own clock for what must come before a time-out: a worker that is kept busy by other programs
 * takes a second. All behaviours are played at once, so the longest takes two of them.
 */
export const SLACK = 15_000;

const tasksOf = ({ history }: Told) => history.filter((type) => type === 'task').length;

/** What a script waits for. */
const AWAITED: Readonly<Record<string, (told: Told, word: string) => boolean>> = {
  has: ({ history }, type) => history.includes(type),
  /** And whatever has come has been told. */
  knows: ({ history }, type) => history.includes(type) && history.at(-1) === 'task',
  tasks: (told, count) => tasksOf(told) === Number(count),
  pending: ({ pending }, count) => pending.length === Number(count),
  attempt: ({ pending: [first] }, nth) => first?.attempt === Number(nth) && first.isStarted,
  'waits-for-attempt': ({ pending: [first] }, nth) => first?.attempt === Number(nth) && !first.isStarted,
  closed: ({ isOpen }) => !isOpen,
};

/** Plays a behaviour: its history, and all that it has seen. */
export async function play(run: ProbeRun, script = '') {
  const { gates } = run;
  const answers: Promise<string>[] = [];
  for (const deed of [...script.split('; ').filter(Boolean), 'closed']) {
    const [verb = '', ...words] = deed.split(' ');
    const word = words.join(' ');
    const isIt = AWAITED[verb];
    if (isIt) await run.until(deed, async () => isIt(await run.told(), word));
    else if (verb === 'at') await run.until(deed, () => gates.reached.has(word));
    else if (verb === 'open' || verb === 'shut') gates[verb](word);
    else if (verb === 'ask') answers.push(Promise.resolve(await run.ask(word)));
    else if (verb === 'ask-behind') answers.push((await run.askBehind(word)).answer);
    else if (verb === 'see') answers.push(Promise.resolve((await run.seen()).join()));
    else if (run.does[verb]) await run.does[verb](word);
    else throw new TypeError(`no script knows ${verb}`);
  }
  const { history } = await run.told();
  const seen = await run.seen();
  return { seen, history: history.join(' '), answers: await Promise.all(answers), attempts: gates.attempts };
}

const TASK = ['WorkflowTaskScheduled', 'WorkflowTaskStarted', 'WorkflowTaskCompleted'];

/** `ActivityScheduled` for `ActivityTaskScheduled`, and so on. */
export function compact(events: readonly { readonly type: string; readonly cause?: string }[]): string[] {
  const short: string[] = [];
  for (let index = 0; index < events.length; index += 1) {
    const isTask = TASK.every((type, nth) => events[index + nth]?.type === type);
    const { type = '', cause } = events[index] ?? {};
    const named = type.replace(/WorkflowExecution/, '').replace(/^ActivityTask/, 'Activity');
    short.push(isTask ? 'task' : cause === undefined ? named : `${named}:${cause}`);
    if (isTask) index += TASK.length - 1;
  }
  return short;
}

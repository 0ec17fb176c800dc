import type { Gates } from './activities';

/** What the server tells of a run. */
export interface RunSnapshot {
  /** Types of events; of a task that has failed, with its cause. */
  readonly history: readonly string[];
  /** Of activities that are pending: the attempt, and whether a worker has it. */
  readonly pending: readonly { readonly attempt: number; readonly isStarted: boolean }[];
  readonly isOpen: boolean;
}

/** A probe on a server, real or simulated. After a reset or a continue-as-new it is the latest run. */
export interface ProbeRun {
  readonly gates: Gates;
  queryLog(): Promise<readonly string[]>;
  snapshot(): Promise<RunSnapshot>;
  /** Waits until what is told is what is waited for. */
  waitUntil(what: string, isIt: (snapshot: RunSnapshot) => boolean): Promise<void>;
  /** @returns the answer, or why it was refused */
  sendUpdate(what: string): Promise<string>;
  /** Asks a question that waits for the end of the task under way. */
  sendUpdateBehindTask(what: string): Promise<{ readonly answer: Promise<string> }>;
  /** What the server is asked to do, by its verb. `reset`: to the nth of its completed tasks, from 0. */
  readonly serverCalls: Readonly<Record<string, (word: string) => Promise<unknown>>>;
}

const DONE = 'WorkflowTaskCompleted';

/** What a script waits for. */
const CONDITIONS: Readonly<Record<string, (snapshot: RunSnapshot, word: string) => boolean>> = {
  has: ({ history }, type) => history.includes(type),
  /** And whatever has come has been told. */
  knows: ({ history }, type) => history.includes(type) && history.at(-1) === DONE,
  tasks: ({ history }, count) => history.filter((type) => type === DONE).length === Number(count),
  pending: ({ pending }, count) => pending.length === Number(count),
  attempt: ({ pending: [first] }, nth) => first?.attempt === Number(nth) && first.isStarted,
  'waits-for-attempt': ({ pending: [first] }, nth) => first?.attempt === Number(nth) && !first.isStarted,
  closed: ({ isOpen }) => !isOpen,
};

/** Plays a script: the history that it makes, and all that was seen. */
export async function playScript(run: ProbeRun, script = '') {
  const { gates } = run;
  const answers: Promise<string>[] = [];
  for (const step of [...script.split('; ').filter(Boolean), 'closed']) {
    const [verb = '', ...words] = step.split(' ');
    const word = words.join(' ');
    const isIt = CONDITIONS[verb];
    if (isIt) await run.waitUntil(step, (snapshot) => isIt(snapshot, word));
    else if (verb === 'at') await run.waitUntil(step, () => gates.reached.has(word));
    else if (verb === 'open' || verb === 'shut') gates[verb](word);
    else if (verb === 'ask') answers.push(Promise.resolve(await run.sendUpdate(word)));
    else if (verb === 'ask-behind') answers.push((await run.sendUpdateBehindTask(word)).answer);
    else if (verb === 'see') answers.push(Promise.resolve((await run.queryLog()).join()));
    else if (run.serverCalls[verb]) await run.serverCalls[verb](word);
    else throw new TypeError(`no script knows ${verb}`);
  }
  const { history } = await run.snapshot();
  return {
    history,
    seen: await run.queryLog(),
    answers: await Promise.all(answers),
    attempts: gates.attempts,
  };
}

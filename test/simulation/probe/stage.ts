import type { Gates } from './activities';

/** What the server tells of a run. */
export interface Told {
  /** Types of events; of a task that has failed, with its cause. */
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
  /** Waits until what is told is what is waited for. */
  until(what: string, isIt: (told: Told) => boolean): Promise<void>;
  /** @returns the answer, or why it was refused */
  ask(what: string): Promise<string>;
  /** Asks a question that waits for the end of the task under way. */
  askBehind(what: string): Promise<{ readonly answer: Promise<string> }>;
  /** What the server is asked to do, by its verb. `reset`: to the nth of its completed tasks, from 0. */
  readonly does: Readonly<Record<string, (word: string) => Promise<unknown>>>;
}

const DONE = 'WorkflowTaskCompleted';

/** What a script waits for. */
const AWAITED: Readonly<Record<string, (told: Told, word: string) => boolean>> = {
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
export async function play(run: ProbeRun, script = '') {
  const { gates } = run;
  const answers: Promise<string>[] = [];
  for (const deed of [...script.split('; ').filter(Boolean), 'closed']) {
    const [verb = '', ...words] = deed.split(' ');
    const word = words.join(' ');
    const isIt = AWAITED[verb];
    if (isIt) await run.until(deed, (told) => isIt(told, word));
    else if (verb === 'at') await run.until(deed, () => gates.reached.has(word));
    else if (verb === 'open' || verb === 'shut') gates[verb](word);
    else if (verb === 'ask') answers.push(Promise.resolve(await run.ask(word)));
    else if (verb === 'ask-behind') answers.push((await run.askBehind(word)).answer);
    else if (verb === 'see') answers.push(Promise.resolve((await run.seen()).join()));
    else if (run.does[verb]) await run.does[verb](word);
    else throw new TypeError(`no script knows ${verb}`);
  }
  const { history } = await run.told();
  return { history, seen: await run.seen(), answers: await Promise.all(answers), attempts: gates.attempts };
}

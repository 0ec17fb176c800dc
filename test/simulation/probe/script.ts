import type { Gates } from './activities';

/** The state of a run on the server. */
export interface RunSnapshot {
  /** The types of the events. The type of a failed workflow task is followed by its cause. */
  readonly history: readonly string[];
  /** The pending activities: the attempt number, and whether a worker runs the attempt. */
  readonly pending: readonly { readonly attempt: number; readonly isStarted: boolean }[];
  readonly isOpen: boolean;
}

/** A probe on a real or simulated server. After a reset or continue-as-new, the calls refer to the latest run. */
export interface ProbeRun {
  readonly gates: Gates;
  queryLog(): Promise<readonly string[]>;
  snapshot(): Promise<RunSnapshot>;
  /** Waits until `isIt` returns true for the state of the run. */
  waitUntil(what: string, isIt: (snapshot: RunSnapshot) => boolean): Promise<void>;
  /** Sends an update. @returns its result, or the reason of its rejection */
  sendUpdate(what: string): Promise<string>;
  /** Sends an update that waits for the end of the workflow task in progress. */
  sendUpdateBehindTask(what: string): Promise<{ readonly answer: Promise<string> }>;
  /** The calls of a script to the server, by their verbs. The argument of `reset` is the index of a completed workflow task, from 0. */
  readonly serverCalls: Readonly<Record<string, (word: string) => Promise<unknown>>>;
}

const DONE = 'WorkflowTaskCompleted';

/** The conditions for which a script can wait. */
const CONDITIONS: Readonly<Record<string, (snapshot: RunSnapshot, word: string) => boolean>> = {
  has: ({ history }, type) => history.includes(type),
  /** The history has this type of event, and the workflow has handled all events. */
  knows: ({ history }, type) => history.includes(type) && history.at(-1) === DONE,
  tasks: ({ history }, count) => history.filter((type) => type === DONE).length === Number(count),
  pending: ({ pending }, count) => pending.length === Number(count),
  attempt: ({ pending: [first] }, nth) => first?.attempt === Number(nth) && first.isStarted,
  'waits-for-attempt': ({ pending: [first] }, nth) => first?.attempt === Number(nth) && !first.isStarted,
  closed: ({ isOpen }) => !isOpen,
};

/** Plays a script. @returns the history, the log of the workflow, the results of the updates, and the started attempts */
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
    else if (verb === 'update') answers.push(Promise.resolve(await run.sendUpdate(word)));
    else if (verb === 'update-behind') answers.push((await run.sendUpdateBehindTask(word)).answer);
    else if (verb === 'see') answers.push(Promise.resolve((await run.queryLog()).join()));
    else if (run.serverCalls[verb]) await run.serverCalls[verb](word);
    else throw new TypeError(`the script has the unknown verb ${verb}`);
  }
  const { history } = await run.snapshot();
  return {
    history,
    seen: await run.queryLog(),
    answers: await Promise.all(answers),
    attempts: gates.starts.map(({ attempt }) => attempt),
  };
}

import { encodeUnifiedSearchAttributes } from '@temporalio/common/lib/converter/payload-search-attributes';
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { VirtualClock } from '../clock';
import { Luck } from '../luck';
import { fromPayload, toPayload } from '../temporal/history';
import type { PendingActivity } from '../temporal/pending-activity';
import type { Run } from '../temporal/run';
import { TemporalServer } from '../temporal/server';
import { SimulatedWorker } from '../worker/worker';
import { createProbeActivities, Gates } from './activities';
import { compact, type ProbeRun, type Stage, type StartOptions, type Told } from './stage';
import type { Step } from './workflow';

/** Nothing is slow. */
class Calm extends Luck {
  override chance(): boolean {
    return false;
  }
  override between(_: string, least: number): number {
    return least;
  }
}

/** Longer than any script. */
const HELD_MS = 3_600_000;

/** Far more than a script takes. */
const MOST_STEPS = 100_000;

/** Plays a script against the simulated server and one worker of it. */
export async function playSimulated<T>(
  workflows: ReusableVMWorkflowCreator,
  evicts: boolean,
  script: (stage: Stage) => Promise<T>,
): Promise<T> {
  const luck = new Calm(1);
  const clock = new VirtualClock(() => luck.next('random'));
  const gates = new Gates();
  const failures: string[] = [];
  const server = new TemporalServer(clock, luck, {}, () => undefined);
  const worker = new SimulatedWorker({
    ...{ name: 'worker', clock, luck, server, workflows },
    activities: () => createProbeActivities(() => gates),
    reached: () => undefined,
    logged: () => undefined,
    failed: (_, why) => {
      failures.push(why);
    },
    evicts: () => evicts,
  });
  server.hold('nobody', HELD_MS);
  try {
    const state = { isOver: false };
    const stage = {
      idOf: (child: string) => `probe/${child}`,
      start: (...args: Parameters<Stage['start']>) => start(clock, server, worker, gates, ...args),
    };
    const end = script(stage).finally(() => (state.isOver = true));
    end.catch(() => undefined);
    await clock.run(() => state.isOver, MOST_STEPS);
    if (!state.isOver)
      throw new Error(`the script waits for ever: ${JSON.stringify(server.runs.map(toldOf))}`);
    if (failures.length > 0) throw new Error(failures.join('; '));
    return await end;
  } finally {
    gates.close();
    worker.kill();
    clock.uninstall();
  }
}

function start(
  clock: VirtualClock,
  server: TemporalServer,
  worker: SimulatedWorker,
  gates: Gates,
  steps: readonly Step[],
  { memo = {}, phase }: StartOptions = {},
): Promise<ProbeRun> {
  const workflowId = 'probe';
  const attributes = new TypedSearchAttributes(
    phase === undefined ? [] : [{ key: defineSearchAttributeKey('FollowUpPhase', 'KEYWORD'), value: phase }],
  );
  server.startWorkflow({
    ...{ workflowId, workflowType: 'probe', taskQueue: 'probe', input: [toPayload(steps)] },
    memo: Object.fromEntries(Object.entries(memo).map(([name, value]) => [name, toPayload(value)])),
    searchAttributes: encodeUnifiedSearchAttributes(undefined, attributes),
  });
  return Promise.resolve(runOf(clock, server, worker, gates, workflowId));
}

function runOf(
  clock: VirtualClock,
  server: TemporalServer,
  worker: SimulatedWorker,
  gates: Gates,
  workflowId: string,
): ProbeRun {
  const latest = (): Run => {
    const run = server.latest(workflowId);
    if (run === undefined) throw new Error(`there is no ${workflowId}`);
    return run;
  };
  const act = (work: () => void) => {
    work();
    return Promise.resolve();
  };
  const until = async (isIt: () => boolean) => {
    while (!isIt()) await clock.sleep(1);
  };
  const ask = async (what: string) => {
    asked += 1;
    const request = { updateId: `question ${asked}`, name: 'ask', input: [toPayload(what)] };
    const end = await latest().update(request);
    if (end.kind === 'answered') return String(fromPayload(end.result));
    return 'failure' in end ? `refused: ${end.failure.message ?? ''}` : end.kind;
  };
  let asked = 0;
  const onActivities = (work: (activity: PendingActivity) => void) =>
    act(() => {
      latest().activities.forEach(work);
    });
  return {
    workflowId,
    gates,
    tell: (what) =>
      act(() => {
        latest().signal('tell', toPayload(what));
      }),
    ask,
    askBehind: (what) => Promise.resolve({ answer: ask(what) }),
    seen: async () => (await worker.query(latest(), 'seen')) as readonly string[],
    told: () => Promise.resolve(toldOf(latest())),
    until: async (isIt) => {
      // A child may not exist yet.
      await until(() => server.latest(workflowId) !== undefined && isIt(toldOf(latest())));
      return toldOf(latest());
    },
    untilReached: (gate) => until(() => gates.reached.has(gate)),
    cancel: () =>
      act(() => {
        latest().requestCancel();
      }),
    terminate: () =>
      act(() => {
        latest().terminate();
      }),
    reset: (task) =>
      act(() => {
        const point = latest().resetPoints()[task];
        if (point === undefined || server.reset(latest(), point) === null) throw new Error('no such task');
      }),
    pause: () =>
      onActivities((activity) => {
        activity.pause();
      }),
    unpause: () =>
      onActivities((activity) => {
        activity.unpause();
      }),
    resetActivity: () =>
      onActivities((activity) => {
        activity.reset();
      }),
    allowAttempts: (attempts) =>
      onActivities((activity) => {
        activity.allowAttempts(attempts);
      }),
    completeById: (result) =>
      onActivities((activity) => {
        activity.completeByHand(toPayload(result));
      }),
    of: (id) => runOf(clock, server, worker, gates, id),
  };
}

function toldOf(run: Run): Told {
  return {
    history: compact(run.events),
    pending: [...run.activities.values()].map(({ attempt, state }) => ({
      attempt,
      isStarted: state === 'started',
    })),
    isOpen: run.isOpen,
  };
}

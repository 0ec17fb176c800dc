import { randomUUID } from 'node:crypto';
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { VirtualClock } from '../clock';
import { RandomSource } from '../random-source';
import { fromPayload, toPayload } from '../temporal/history';
import type { PendingActivity } from '../temporal/pending-activity';
import type { Run } from '../temporal/run';
import { startRequest, TemporalServer } from '../temporal/server';
import { replayRun } from '../worker/cached-run';
import { SimulatedWorker } from '../worker/worker';
import { createProbeActivities, Gates } from './activities';
import type { Behavior } from './behaviors';
import { playScript, type ProbeRun, type RunSnapshot } from './script';

/** Random values without slow delays. */
const CALM = { chance: () => false, between: (_: string, least: number) => least };

/** More timers than any script needs. */
const MOST_STEPS = 100_000;

/** Plays a behavior on the simulated server with one worker. */
export async function playSimulated(
  workflows: ReusableVMWorkflowCreator,
  evicts: boolean,
  { steps, memo = {}, phase, script }: Behavior,
) {
  const random = Object.assign(new RandomSource(1), CALM);
  const clock = new VirtualClock(() => random.next('random'));
  const gates = new Gates();
  const failures: string[] = [];
  const server = new TemporalServer(clock, random, {}, () => undefined);
  const worker = new SimulatedWorker({
    ...{ name: 'worker', clock, random, server, workflows },
    activities: () => createProbeActivities(() => gates),
    reached: () => undefined,
    logged: () => undefined,
    failed: (_, reason) => failures.push(reason),
    queryOf: () => undefined,
    shouldEvict: () => evicts,
  });
  server.hold('nobody', Infinity);
  const key = defineSearchAttributeKey('FollowUpPhase', 'KEYWORD');
  const attributes = new TypedSearchAttributes(phase === undefined ? [] : [{ key, value: phase }]);
  try {
    const state = { isOver: false };
    server.start(startRequest('probe', 'probe', 'probe', steps, memo, attributes));
    const end = playScript(runOf(workflows, clock, server, gates), script).finally(
      () => (state.isOver = true),
    );
    end.catch(() => undefined);
    await clock.run(() => state.isOver, MOST_STEPS);
    if (!state.isOver)
      throw new Error(`the script waits indefinitely: ${JSON.stringify(server.runs.map(snapshotOf))}`);
    if (failures.length > 0) throw new Error(failures.join('; '));
    return await end;
  } finally {
    gates.openAll();
    worker.kill();
    clock.uninstall();
  }
}

function runOf(
  workflows: ReusableVMWorkflowCreator,
  clock: VirtualClock,
  server: TemporalServer,
  gates: Gates,
): ProbeRun {
  const latest = (): Run => {
    const run = server.find('probe');
    if (run === undefined) throw new Error('the server has no probe');
    return run;
  };
  const update = async (what: string) => {
    const end = await latest().update({ updateId: randomUUID(), name: 'update', input: [toPayload(what)] });
    if (end.kind === 'answered') return String(fromPayload(end.result));
    return 'failure' in end ? `rejected: ${end.failure.message ?? ''}` : end.kind;
  };
  const act = (work: (run: Run, word: string) => void) => (word: string) => {
    work(latest(), word);
    return Promise.resolve();
  };
  const onActivities = (work: (activity: PendingActivity, word: string) => void) =>
    act(({ activities }, word) => {
      for (const activity of activities.values()) work(activity, word);
    });
  return {
    gates,
    sendUpdate: update,
    sendUpdateBehindTask: (what) => Promise.resolve({ answer: update(what) }),
    queryLog: async () => (await replayRun(workflows, latest(), clock, 'seen')) as readonly string[],
    snapshot: () => Promise.resolve(snapshotOf(latest())),
    waitUntil: async (_, isIt) => {
      while (!isIt(snapshotOf(latest()))) await clock.sleep(1);
    },
    serverCalls: {
      signal: act((run, what) => run.signal('signal', toPayload(what))),
      cancel: act((run) => run.requestCancel()),
      terminate: act((run) => run.terminate()),
      reset: act((run, task) => {
        const point = run.resetPoints()[Number(task)];
        if (point === undefined || server.reset(run, point) === null)
          throw new Error(`the run can't be reset to the workflow task ${task}`);
      }),
      pause: onActivities((activity) => activity.pause()),
      unpause: onActivities((activity) => activity.unpause()),
      'reset-activity': onActivities((activity) => activity.reset()),
      'allow-attempts': onActivities((activity, attempts) => activity.allowAttempts(Number(attempts))),
      'complete-as': onActivities((activity, result) => activity.completeManually(toPayload(result))),
    },
  };
}

function snapshotOf(run: Run): RunSnapshot {
  return {
    history: run.events.map((event) => ('cause' in event ? `${event.type} ${event.cause}` : event.type)),
    pending: [...run.activities.values()].map(({ attempt, state }) => ({
      attempt,
      isStarted: state === 'started',
    })),
    isOpen: run.isOpen,
  };
}

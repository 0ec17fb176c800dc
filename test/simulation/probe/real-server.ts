import { randomUUID } from 'node:crypto';
import { Client, Connection, WorkflowUpdateFailedError } from '@temporalio/client';
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import { temporal as proto } from '@temporalio/proto';
import { NativeConnection, Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { eventually } from '../../../tools/lib/eventually';
import { Operator } from '../../harness/operator';
import { eventsOf, type HistoryEvent, resetToTask, workflowTasks } from '../../harness/reset';
import { temporal } from '../../harness/temporal';
import { causeOf, typeOf } from '../simulated-history';
import { createProbeActivities, Gates } from './activities';
import type { Behavior } from './behaviors';
import { playScript, type ProbeRun, type RunSnapshot } from './script';
import type { probe } from './workflow';

const { PendingActivityState, UpdateWorkflowExecutionLifecycleStage } = proto.api.enums.v1;
/** The states in which a worker runs the activity, including states in which the worker has not received a pause or a cancellation. */
const STARTED = new Set<number>([
  PendingActivityState.PENDING_ACTIVITY_STATE_STARTED,
  PendingActivityState.PENDING_ACTIVITY_STATE_PAUSE_REQUESTED,
  PendingActivityState.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED,
]);
const ADMITTED = UpdateWorkflowExecutionLifecycleStage.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED;

/**
 * A task was recorded as started, but no worker received it before its timeout. On two cores with a load of 20, this happens to a few of
 * 1,000 tasks on Temporal server 1.32.0. The script can't handle the timeout, so it is played again.
 */
class TaskLost extends Error {}

function hasLostTask(events: readonly HistoryEvent[], { starts }: Gates): boolean {
  // The history has the start of an attempt only together with its end.
  const timedOut = events.map(({ activityTaskTimedOutEventAttributes: end }, index) =>
    end ? (events[index - 1]?.activityTaskStartedEventAttributes?.attempt ?? 0) : 0,
  );
  return (
    events.some((event) => event.workflowTaskTimedOutEventAttributes) ||
    timedOut.some((lost) => lost > 0 && !starts.some(({ attempt }) => attempt === lost)) ||
    starts.some(
      ({ runId, attempt }) =>
        attempt > 1 && !starts.some((start) => start.runId === runId && start.attempt === attempt - 1),
    )
  );
}

/** A worker of the probe on the tests' Temporal server. */
export class ServedProbes {
  private readonly gates = new Map<string, Gates>();
  private readonly taskQueue = `probe-${randomUUID()}`;

  private constructor(
    private readonly client: Client,
    readonly close: () => Promise<void>,
  ) {}

  static async open(workflowBundle: WorkflowBundleWithSourceMap): Promise<ServedProbes> {
    const { address } = temporal();
    const native = await NativeConnection.connect({ address });
    const connection = await Connection.connect({ address });
    const probes: ServedProbes = new ServedProbes(new Client({ connection }), async () => {
      for (const gates of probes.gates.values()) gates.openAll();
      worker.shutdown();
      await running;
      await connection.close();
      await native.close();
    });
    const worker = await Worker.create({
      connection: native,
      taskQueue: probes.taskQueue,
      workflowBundle,
      // By default, the SDK's core delays heartbeats for 0.8 × the heartbeat timeout.
      maxHeartbeatThrottleInterval: '100ms',
      activities: createProbeActivities((workflowId) => probes.gatesOf(workflowId)),
    });
    const running = worker.run();
    return probes;
  }

  /** Plays a behavior on the real Temporal server. */
  async play(name: string, behavior: Behavior) {
    for (;;) {
      const workflowId = `probe-${randomUUID()}`;
      await this.start(workflowId, behavior);
      try {
        return await playScript(this.runOf(name, workflowId), behavior.script);
      } catch (error) {
        if (!(error instanceof TaskLost)) throw error;
      }
    }
  }

  private async start(workflowId: string, { steps, memo = {}, phase }: Behavior): Promise<void> {
    const { client, taskQueue } = this;
    const key = defineSearchAttributeKey('FollowUpPhase', 'KEYWORD');
    const attributes = phase === undefined ? [] : [{ key, value: phase }];
    await client.workflow.start<typeof probe>('probe', {
      ...{ workflowId, taskQueue, args: [steps], memo: { ...memo } },
      // A script may keep a workflow task open, on a busy machine for longer than the default timeout of ten seconds.
      workflowTaskTimeout: '20 seconds',
      typedSearchAttributes: new TypedSearchAttributes(attributes),
    });
  }

  private gatesOf(workflowId: string): Gates {
    let gates = this.gates.get(workflowId);
    if (gates === undefined) this.gates.set(workflowId, (gates = new Gates()));
    return gates;
  }

  private runOf(name: string, workflowId: string): ProbeRun {
    const { client } = this;
    const handle = client.workflow.getHandle(workflowId);
    const operator = new Operator(client);
    const update = (what: string, updateId: string = randomUUID()) =>
      handle.executeUpdate<string, [string]>('update', { args: [what], updateId }).catch((error: unknown) => {
        if (!(error instanceof WorkflowUpdateFailedError)) throw error;
        return `rejected: ${error.cause?.message ?? ''}`;
      });
    const done = async (isDone: Promise<boolean>) => {
      if (!(await isDone)) throw new Error('the workflow has no pending activity');
    };
    const gates = this.gatesOf(workflowId);
    const snapshot = async () => {
      const { raw, status } = await handle.describe();
      const isOpen = status.name === 'RUNNING';
      const events = await eventsOf(handle);
      if (hasLostTask(events, gates)) throw new TaskLost();
      return {
        history: events.map((event) => {
          const { workflowTaskFailedEventAttributes: failed } = event;
          return `${typeOf(event)}${failed ? ` ${causeOf(failed.cause)}` : ''}`;
        }),
        pending: (raw.pendingActivities ?? []).map(({ attempt, state }) => ({
          attempt: attempt ?? 0,
          isStarted: STARTED.has(state ?? 0),
        })),
        isOpen,
      };
    };
    return {
      gates,
      sendUpdate: update,
      sendUpdateBehindTask: async (what) => {
        const updateId = randomUUID();
        const answer = update(what, updateId);
        await eventually('the update is admitted', () =>
          client.workflowService.pollWorkflowExecutionUpdate({
            namespace: 'default',
            updateRef: { workflowExecution: { workflowId }, updateId },
            waitPolicy: { lifecycleStage: ADMITTED },
          }),
        );
        return { answer };
      },
      queryLog: () => handle.query<readonly string[]>('seen'),
      snapshot,
      waitUntil: async (what, isIt) => {
        // About fifty scripts run at the same time, and their polling must not overload the machine.
        const pollSnapshot = () =>
          snapshot().catch((error: unknown) => {
            if (error instanceof TaskLost) return error;
            throw error;
          });
        const until = (found: RunSnapshot | TaskLost) => found instanceof TaskLost || isIt(found);
        const found = await eventually(`${name}: ${what}`, pollSnapshot, { intervalMs: 250, until });
        if (found instanceof TaskLost) throw found;
      },
      serverCalls: {
        signal: (what) => handle.signal('signal', what),
        cancel: () => handle.cancel(),
        terminate: () => handle.terminate(),
        reset: async (task) => resetToTask(handle, (await workflowTasks(handle))[Number(task)]),
        pause: () => done(operator.pause(workflowId, 'perform')),
        unpause: () => done(operator.unpause(workflowId, 'perform')),
        'reset-activity': () => done(operator.reset(workflowId, 'perform')),
        'allow-attempts': (most) => done(operator.allowAttempts(workflowId, 'perform', Number(most))),
        'complete-as': (result) => done(operator.complete(workflowId, 'perform', JSON.stringify(result))),
      },
    };
  }
}

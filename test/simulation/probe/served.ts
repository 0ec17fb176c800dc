import { randomUUID } from 'node:crypto';
import { Client, Connection, WorkflowUpdateFailedError } from '@temporalio/client';
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import { temporal as proto } from '@temporalio/proto';
import { NativeConnection, Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { eventually } from '../../harness/eventually';
import { Operator } from '../../harness/operator';
import { resetToTask, workflowTasks } from '../../harness/reset';
import { temporal } from '../../harness/temporal';
import { causeOf, typeOf } from '../recorded';
import { createProbeActivities, Gates } from './activities';
import type { Behaviour } from './behaviours';
import { play, type ProbeRun } from './stage';
import type { probe } from './workflow';

const { PendingActivityState, UpdateWorkflowExecutionLifecycleStage } = proto.api.enums.v1;
/** With a worker, also while a pause or a cancel is on its way to it. */
const STARTED = new Set<number>([
  PendingActivityState.PENDING_ACTIVITY_STATE_STARTED,
  PendingActivityState.PENDING_ACTIVITY_STATE_PAUSE_REQUESTED,
  PendingActivityState.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED,
]);
const ADMITTED = UpdateWorkflowExecutionLifecycleStage.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED;

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
      for (const gates of probes.gates.values()) gates.close();
      worker.shutdown();
      await running;
      await connection.close();
      await native.close();
    });
    const worker = await Worker.create({
      connection: native,
      taskQueue: probes.taskQueue,
      workflowBundle,
      // By default the core holds heartbeats back until a fifth of their time-out is left.
      maxHeartbeatThrottleInterval: '100ms',
      activities: createProbeActivities((workflowId) => probes.gatesOf(workflowId)),
    });
    const running = worker.run();
    return probes;
  }

  async play({ steps, memo = {}, phase, script }: Behaviour) {
    const { client, taskQueue } = this;
    const workflowId = `probe-${randomUUID()}`;
    const key = defineSearchAttributeKey('FollowUpPhase', 'KEYWORD');
    const attributes = phase === undefined ? [] : [{ key, value: phase }];
    await client.workflow.start<typeof probe>('probe', {
      ...{ workflowId, taskQueue, args: [steps], memo: { ...memo } },
      // A script may hold a task open, on a busy machine for longer than ten seconds.
      workflowTaskTimeout: '2 minutes',
      typedSearchAttributes: new TypedSearchAttributes(attributes),
    });
    return play(this.runOf(workflowId), script);
  }

  private gatesOf(workflowId: string): Gates {
    let gates = this.gates.get(workflowId);
    if (gates === undefined) this.gates.set(workflowId, (gates = new Gates()));
    return gates;
  }

  private runOf(workflowId: string): ProbeRun {
    const { client } = this;
    const handle = client.workflow.getHandle(workflowId);
    const operator = new Operator(client);
    const ask = (what: string, updateId: string = randomUUID()) =>
      handle.executeUpdate<string, [string]>('ask', { args: [what], updateId }).catch((error: unknown) => {
        if (!(error instanceof WorkflowUpdateFailedError)) throw error;
        return `refused: ${error.cause?.message ?? ''}`;
      });
    const done = async (isDone: Promise<boolean>) => {
      if (!(await isDone)) throw new Error('no such activity');
    };
    return {
      gates: this.gatesOf(workflowId),
      ask,
      askBehind: async (what) => {
        const updateId = randomUUID();
        const answer = ask(what, updateId);
        await eventually('the question has come', () =>
          client.workflowService.pollWorkflowExecutionUpdate({
            namespace: 'default',
            updateRef: { workflowExecution: { workflowId }, updateId },
            waitPolicy: { lifecycleStage: ADMITTED },
          }),
        );
        return { answer };
      },
      seen: () => handle.query<readonly string[]>('seen'),
      told: async () => {
        const { raw, status } = await handle.describe();
        const { events } = await handle.fetchHistory();
        return {
          history: (events ?? []).map((event) => {
            const { workflowTaskFailedEventAttributes: failed } = event;
            return `${typeOf(event)}${failed ? ` ${causeOf(failed.cause)}` : ''}`;
          }),
          pending: (raw.pendingActivities ?? []).map(({ attempt, state }) => ({
            attempt: attempt ?? 0,
            isStarted: STARTED.has(state ?? 0),
          })),
          isOpen: status.name === 'RUNNING',
        };
      },
      until: async (what, isIt) => {
        // Fifty scripts at once: their looks must not keep the machine busy.
        await eventually(what, isIt, { intervalMs: 250 });
      },
      does: {
        tell: (what) => handle.signal('tell', what),
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

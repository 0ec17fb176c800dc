import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, WorkflowNotFoundError, WorkflowUpdateFailedError } from '@temporalio/client';
import { grpcError, isTransient } from '../../../src/temporal/grpc-status';
import { UPDATE_EXTEND_DEADLINE, UPDATE_POLL_NOW, UPDATE_RESOLVE_DELIVERY } from '../../../src/core/names';
import type { DeliveryDecision } from '../../../src/core/result';
import { eventually } from '../eventually';
import type { Following } from '../following';
import { listed } from '../listed';
import { Operator } from '../operator';
import type { ProcessEnvironment } from '../process-environment';
import { resetToTask, workflowTasks } from '../reset';
import { throughRestarts } from '../restartable-server';
import type { DeedKind, Part } from './draw-parts';
import { endOf } from './oracle';

/**
 * `ended`: the follow-up had its end before it could answer. `lost`: the server could not tell what became of it. `none`:
 * nobody answered, until after the deadline.
 */
export type Outcome = 'answered' | 'refused' | 'ended' | 'lost' | 'none';

export interface Decision {
  readonly decision: DeliveryDecision;
  /** The run that it names; undefined where it names none, which stands for the first run. */
  readonly runId: string | undefined;
  readonly askedAt: number;
  readonly answeredAt: number;
  readonly outcome: Outcome;
}

/** An update of the follow-up. */
interface Update {
  readonly name: string;
  readonly outcome: Outcome;
  readonly tookMs: number;
  /** Why it was not answered. */
  readonly error?: string;
}

/** What people have done to one follow-up. Times are milliseconds since the epoch. */
export interface Diary {
  readonly updates: Update[];
  /** Decisions that were made at once stand together. */
  readonly decisions: Decision[][];
  readonly resets: { readonly at: number; readonly runId: string }[];
}

/** Longer than a follow-up takes: a worker that dies delays an answer, and the end of the follow-up brings one. */
const UPDATE_TIMEOUT_MS = 160_000;

/** Somebody waits for so long for the moment at which a send is pending. */
const PENDING_TIMEOUT_MS = 8_000;

const SEND = 'sendMessage';

/** The people around one follow-up. */
export class People {
  readonly diary: Diary = { updates: [], decisions: [], resets: [] };
  private readonly client: Client;
  private readonly operator: Operator;
  private readonly workflowId: string;

  constructor(
    private readonly environment: ProcessEnvironment,
    private readonly part: Part,
    private readonly following: Following,
  ) {
    this.client = environment.client;
    this.operator = new Operator(environment.client);
    this.workflowId = following.handle.workflowId;
  }

  /** Does what the part has planned, one after the other, until `stop`. */
  async act(stop: AbortSignal): Promise<void> {
    for (const { kind, afterMs } of this.part.deeds) {
      await sleep(afterMs, undefined, { signal: stop }).catch(() => undefined);
      if (stop.aborted) return;
      await this.deeds[kind](stop);
    }
  }

  /** Decides whether the message was delivered, somehow: right or wrong, once or several times at once. */
  async decide(): Promise<void> {
    const { runId } = await this.latestRun();
    const chance = this.part.random();
    const volley = (...decisions: [DeliveryDecision, string?][]) =>
      Promise.all(decisions.map(([decision, named]) => this.resolve(decision, named)));
    const made = await (chance < 0.3
      ? volley(['delivered', runId])
      : chance < 0.6
        ? volley(['not-delivered', runId])
        : chance < 0.7
          ? volley(['not-delivered'])
          : chance < 0.85
            ? volley(['delivered', runId], ['not-delivered', runId], ['delivered', runId])
            : volley(['not-delivered', runId], ['not-delivered', runId], ['delivered', runId]));
    this.diary.decisions.push(made);
  }

  /** What each deed is. */
  private readonly deeds: Readonly<Record<DeedKind, (stop: AbortSignal) => unknown>> = {
    'poll-now': () => this.update(UPDATE_POLL_NOW, []),
    'extend-deadline': () =>
      this.update(UPDATE_EXTEND_DEADLINE, [this.part.random() < 0.8 ? '20s' : '\ud800']),
    'other-turn': () => {
      this.following.changeJob({ status: 'active' });
    },
    archive: () => {
      this.following.changeJob({ status: 'archived' });
    },
    unarchive: () => {
      this.unarchive();
    },
    cancel: () => throughRestarts(() => this.client.workflow.getHandle(this.workflowId).cancel()),
    'limit-attempts': () => this.whenSending(() => this.operator.allowAttempts(this.workflowId, SEND, 1)),
    'reset-activity': () => this.whenSending(() => this.operator.reset(this.workflowId, SEND, false)),
    'pause-send': () => this.pauseForAWhile(),
    'reset-after-end': async (stop) => {
      await endOf(this.client, this.workflowId);
      // A late one would take its whole deadline again, and the soak would not end in time.
      if (!stop.aborted) await this.resetSomewhere();
    },
    reset: () => this.resetSomewhere(),
  };

  /** The job gets the status back that it had before it was archived. */
  private unarchive(): void {
    const { sandbox } = this.environment;
    const { job, changes } = sandbox.job(this.following.key);
    if (job.status !== 'archived') return;
    const before = changes.findLast(({ job: { status } }) => status === 'completed' || status === 'failed');
    this.following.changeJob({ status: before?.job.status === 'failed' ? 'failed' : 'completed' });
  }

  private async pauseForAWhile(): Promise<void> {
    await this.whenSending(() => this.operator.pause(this.workflowId, SEND));
    await sleep(10_000 * this.part.random());
    await throughRestarts(() => this.operator.unpause(this.workflowId, SEND));
  }

  /** Does it once a send is pending, if one is within some seconds. */
  private async whenSending(act: () => Promise<boolean>): Promise<void> {
    const within = { timeoutMs: PENDING_TIMEOUT_MS };
    await eventually('a pending send', () => throughRestarts(act), within).catch(() => undefined);
  }

  /** Resets to before a workflow task by chance, early ones above all: there the message is sent. */
  private async resetSomewhere(): Promise<void> {
    const share = this.part.random() ** 2;
    const handle = this.client.workflow.getHandle(this.workflowId);
    try {
      const run = await throughRestarts(async () => {
        const tasks = await workflowTasks(handle);
        const task = tasks[Math.floor(share * tasks.length)];
        return task && resetToTask(handle, task);
      });
      if (run === undefined) return;
      const { runId } = await throughRestarts(() => run.describe());
      this.diary.resets.push({ at: Date.now(), runId });
    } catch (error) {
      // It has moved on since its history was read.
      if (!/already|not found|invalid|reset/i.test(String(error))) throw error;
    }
  }

  private async resolve(decision: DeliveryDecision, runId?: string): Promise<Decision> {
    const askedAt = Date.now();
    const args = runId === undefined ? [decision] : [decision, runId];
    const outcome = await this.update(UPDATE_RESOLVE_DELIVERY, args);
    return { decision, runId, askedAt, answeredAt: Date.now(), outcome };
  }

  /** The id makes an update that is repeated the same one, so that the server may die while it is answered. */
  private async update(name: string, args: unknown[]): Promise<Outcome> {
    const handle = this.client.workflow.getHandle(this.workflowId);
    const askedAt = Date.now();
    const options = { args: args as [unknown], updateId: randomUUID() };
    const until = askedAt + UPDATE_TIMEOUT_MS;
    const told = await throughRestarts(() => {
      if (Date.now() >= until) throw new Error('nobody has answered');
      return this.client.withDeadline(until, () => handle.executeUpdate<unknown, [unknown]>(name, options));
    }).then(
      () => ({ outcome: 'answered' as const }),
      (error: unknown) => ({ outcome: outcomeOf(error), error: grpcError(error)?.words ?? String(error) }),
    );
    this.diary.updates.push({ name, tookMs: Date.now() - askedAt, ...told });
    return told.outcome;
  }

  private async latestRun(): Promise<{ runId: string }> {
    return throughRestarts(() => this.client.workflow.getHandle(this.workflowId).describe());
  }
}

function outcomeOf(error: unknown): Outcome {
  if (error instanceof WorkflowUpdateFailedError) return 'refused';
  if (error instanceof WorkflowNotFoundError) return 'ended';
  return grpcError(error) === undefined || isTransient(error) ? 'none' : 'lost';
}

/** Somebody who looks for follow-ups that wait for a decision, and decides. */
export async function decideAll(
  environment: ProcessEnvironment,
  people: ReadonlyMap<string, People>,
  over: AbortSignal,
) {
  const query = `TaskQueue = '${environment.taskQueue}' AND FollowUpPhase = 'needs-decision' AND ExecutionStatus = 'Running'`;
  const deciding = new Map<string, Promise<void>>();
  while (!over.aborted) {
    const asking = await throughRestarts(() => listed(environment.client.workflow.list({ query })));
    for (const workflowId of asking.filter((each) => !deciding.has(each))) {
      const decision = people.get(workflowId)?.decide() ?? Promise.resolve();
      const decided = decision.finally(() => deciding.delete(workflowId));
      deciding.set(workflowId, decided);
    }
    await sleep(1_000, undefined, { signal: over }).catch(() => undefined);
  }
  await Promise.all(deciding.values());
}
